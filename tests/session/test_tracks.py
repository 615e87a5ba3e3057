"""Tracks of rows in any order: gaps, splits, movies, missing times."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.positions import find_tissue
from napari_embedding_game.session.neighborhoods import make_neighborhood_job
from napari_embedding_game.session.second_space import find_section_columns
from napari_embedding_game.session.tracks import add_track_columns, find_tracks
from napari_embedding_game.tl import neighborhoods
from napari_embedding_game.tl import tracks as follow_tracks
from worlds import read, rows

HEADINGS = "LABEL,TRACK_ID,FRAME,POSITION_X,POSITION_Y,QUALITY,MEAN,STD"
TITLES = """Label,Track ID,Frame,X,Y,Quality,Mean,Std
Label,Track ID,Frame,X,Y,Quality,Mean,Std
,,,(micron),(micron),(quality),(counts),(counts)"""


def table(seed=0, **moments):
    """Measures of moments (track, time, x, y), by default 6 tracks of 8 times, mixed.

    Track k is k times 10, at (k, time²): its speed from t - 1 to t is 2 t - 1.
    """
    rng = np.random.default_rng(seed)
    track, time = (one.ravel() for one in np.mgrid[:6, :8])
    parts = {"TRACK_ID": 10 * track, "FRAME": time}
    parts |= {"POSITION_X": track, "POSITION_Y": time**2, **moments}
    frame = pd.DataFrame(parts)
    for name in ("QUALITY", "MEAN", "STD"):
        frame[name] = rng.random(len(frame))
    return frame.sample(frac=1, random_state=seed)


def in_dataset(frame, **parts):
    obs = frame.drop(columns=["QUALITY", "MEAN", "STD"]).reset_index(drop=True)
    parts["source_tissue"] = find_tissue(obs, {})
    return rows(frame[["QUALITY", "MEAN", "STD"]].to_numpy(), obs=obs, **parts)


def test_objects_are_neighbours_in_their_frame_and_field_alone():
    """Objects that hardly move would be their own neighbours in the next frame."""
    track, time = (one.ravel() for one in np.mgrid[:6, :8])
    places = {"POSITION_X": track**2, "POSITION_Y": 0.01 * time}
    frame = table(**places, FIELD=np.where(time < 2, "a", "b"))
    frame["TYPE"] = np.where(frame["TRACK_ID"] == 0, "first", "other")
    dataset = in_dataset(frame)
    assert find_section_columns(dataset) == ["FRAME"]
    groups = pd.Categorical(dataset.obs["TYPE"])
    found = make_neighborhood_job(dataset, groups, 1)()
    assert found.counts.tolist() == [[0, 8], [8, 32]]

    adata = AnnData(obs=dataset.obs.rename(str))
    adata.obsm["spatial"] = dataset.tissue.positions
    columns = ["FRAME", "FIELD"]
    again = neighborhoods(adata, "TYPE", n_neighbors=1, section_key=columns)
    assert again["counts"].tolist() == found.counts.ravel().tolist()


def cells(values):
    return pd.Categorical(list(values))


@pytest.fixture(params=["csv", "trackmate.csv", "parquet", "h5ad"])
def written(request, tmp_path):
    """A shuffled table of tracks in a file, one row of which is on none."""
    frame = table()
    frame["TRACK_ID"] = frame["TRACK_ID"].astype("Int64")
    frame.loc[frame.index[3], "TRACK_ID"] = pd.NA
    frame.insert(0, "LABEL", [f"ID{i}" for i in frame.index])
    path = tmp_path / f"spots.{request.param}"
    if request.param == "parquet":
        frame.to_parquet(path, index=False)
    elif request.param == "h5ad":
        import anndata

        obs = frame.set_index("LABEL")
        measures = obs[["QUALITY", "MEAN", "STD"]]
        anndata.AnnData(measures, obs=obs.drop(columns=[*measures])).write_h5ad(path)
    else:
        lines = frame.to_csv(index=False).splitlines()
        more = TITLES.splitlines() if "trackmate" in request.param else []
        path.write_text("\n".join([lines[0], *more, *lines[1:]]))
    return path, frame


def test_tracks_of_a_file_have_roles_are_not_embedded_and_are_followed(written):
    path, frame = written
    dataset = read(path)
    assert dataset.roles["TRACK_ID"] == "tracks"
    assert dataset.roles["FRAME"] == "times"
    assert set(dataset.var_names) == {"QUALITY", "MEAN", "STD"}
    tracks = find_tracks(dataset)
    assert tracks.ids == ("0", "10", "20", "30", "40", "50")
    assert len(tracks.order) == len(frame) - 1
    assert "47 of 48 rows" in tracks.describe_tracks()
    time = frame["FRAME"].to_numpy()
    lost = frame["TRACK_ID"].isna().to_numpy()
    by_name = dict(zip(frame["LABEL"], range(len(frame)), strict=True))
    order = [by_name[name] for name in dataset.obs.index]
    time, lost, y = time[order], lost[order], frame["POSITION_Y"].to_numpy()[order]
    has_former = tracks.previous >= 0
    assert not has_former[(time == 0) | lost].any()
    steps = time - time[tracks.previous]
    # Over the moment that is on no track a step takes two frames.
    assert sorted(steps[has_former])[-2:] in ([1, 1], [1, 2])
    expected = np.abs(y - y[tracks.previous]) / steps
    np.testing.assert_allclose(
        tracks.compute_speeds(), np.where(has_former, expected, np.nan)
    )
    displaced = tracks.compute_displacements()
    last = (time == 7) & ~lost
    first_time = np.array(
        [time[tracks.find_moments_of_tracks([i])].min() for i in range(6)]
    )
    np.testing.assert_allclose(
        displaced[last], 49 - first_time[tracks.track_of_row[last]] ** 2
    )
    chosen = tracks.find_tracks_of_rows(np.flatnonzero(~lost)[:1])
    assert (np.diff(time[tracks.find_moments_of_tracks(chosen)]) > 0).all()


def test_classes_of_tracks_follow_time_and_are_columns_to_be_saved():
    frame = table()
    dataset = in_dataset(frame)
    # Each track is A at first, C at time 4 only, then B; track 0 as often A as B.
    time, track = frame["FRAME"].to_numpy(), frame["TRACK_ID"].to_numpy()
    kinds = np.where(time < 4, "A", np.where(time == 4, "C", "B")).astype(object)
    kinds[(track == 0) & (time == 4)] = "B"
    kinds[track == 50] = None
    classes = pd.Categorical(kinds, categories=["C", "B", "A", "never"])
    found = find_tracks(dataset).summarise_classes(classes)
    assert found["moments"].tolist() == [8] * 6
    assert (found["from"].tolist(), found["to"].tolist()) == ([0] * 6, [7] * 6)
    assert found["majority"].tolist()[:5] == ["A"] * 5  # as many, but earlier
    assert found["first"].tolist()[:5] == ["A"] * 5
    assert found["sequence"].tolist() == ["A → B", *["A → C → B"] * 4, ""]
    assert found[["majority", "first", "last"]].iloc[5].isna().all()
    grown, name = add_track_columns(dataset, classes)
    assert grown.obs["track_last"].isna().tolist() == (track == 50).tolist()
    assert grown.roles["track_last"] == "groups"
    again, same = add_track_columns(grown, pd.Categorical(["D"] * 48))
    assert (name, same) == ("track", "track")
    assert set(again.obs["track_majority"]) == {"D"}
    assert list(again.obs.columns) == list(grown.obs.columns)
    with pytest.raises(DataError, match="have no tracks"):
        add_track_columns(rows(np.eye(4)), cells("AABB"))


def test_a_split_goes_on_from_its_mother_and_what_vanishes_comes_back():
    # Track 5 splits after time 1: the daughters go left and right.  Track 7 is gone at
    # time 1, and a row has no time.
    moments = [
        (5, 0, 0, 0),
        (5, 1, 0, 0),
        (5, 2, -1, 0),
        (5, 2, 1, 0),
        (5, 3, 2, 0),
        (5, 3, -2, 0),
        (7, 0, 9, 9),
        (7, 2, 9, 13),
        (7, np.nan, 9, 9),
        (-1, 1, 0, 0),
    ]
    track, time, x, y = map(np.array, zip(*moments, strict=True))
    frame = table(TRACK_ID=track, FRAME=time, POSITION_X=x, POSITION_Y=y)
    at = np.argsort(frame.index)  # the shuffled place of each moment above
    dataset = in_dataset(frame)
    tracks = find_tracks(dataset)
    former = {
        one: at.tolist().index(two)
        for one, two in enumerate(tracks.previous[at])
        if two >= 0
    }
    assert former == {1: 0, 2: 1, 3: 1, 4: 3, 5: 2, 7: 6}
    assert tracks.compute_speeds()[at][[2, 4, 7]].tolist() == [1, 1, 2]
    assert tracks.compute_displacements()[at][[4, 5, 7]].tolist() == [2, 2, 4]
    assert tracks.n_without_time == 1
    assert "1 row without a time left out" in tracks.describe_tracks()
    blind = find_tracks(in_dataset(frame.drop(columns=["POSITION_X", "POSITION_Y"])))
    assert blind.previous[at[[2, 3]]].tolist() == [at[1], at[1]]
    assert blind.previous[at[[4, 5]]].tolist() == [-1, -1]  # either may be the mother
    assert np.isnan(blind.compute_speeds()).all()


def test_movies_with_the_same_ids_are_told_apart_and_a_drug_ends_no_track():
    one, other = table(0), table(1)
    other["POSITION_X"] += 100
    frame = pd.concat([one.assign(movie="a"), other.assign(movie="b")])
    frame["treatment"] = np.where(frame["FRAME"] < 4, "before", "after")
    frame = frame.sample(frac=1, random_state=2)
    tracks = find_tracks(in_dataset(frame))
    assert tracks.movie_columns == ("movie",)
    assert tracks.ids[:2] == ("a, 0", "a, 10")
    assert len(tracks.ids) == 12
    assert np.nanmax(tracks.compute_speeds()) == 13
    alone = find_tracks(in_dataset(frame[frame["movie"] == "a"]))
    assert (alone.movie_columns, len(alone.ids)) == ((), 6)


def test_a_day_of_a_sample_is_no_time_of_a_track():
    frame = table().rename(columns={"TRACK_ID": "kind"})
    frame["time"] = frame["FRAME"] % 2
    dataset = in_dataset(frame)
    assert "times" not in dataset.roles.values()
    assert find_tracks(dataset) is None
    chosen = replace(
        dataset, roles={**dataset.roles, "kind": "tracks", "FRAME": "times"}
    )
    assert len(find_tracks(chosen).ids) == 6


def test_python_follows_tracks_of_an_anndata():
    import anndata

    frame = table().rename(columns={"TRACK_ID": "track_id", "FRAME": "frame"})
    obs = frame.assign(leiden=cells("AB" * 24)).set_axis(frame.index.astype(str))
    adata = anndata.AnnData(np.zeros((48, 1)), obs=obs)
    found = follow_tracks(adata, "leiden", positions=["POSITION_X", "POSITION_Y"])
    assert found["track"].tolist() == ["0", "10", "20", "30", "40", "50"]
    assert adata.obs.groupby("track_id")["track_speed"].max().tolist() == [13.0] * 6
    assert adata.obs["track_speed"].isna().tolist() == (obs["frame"] == 0).tolist()
    places = ["POSITION_X", "POSITION_Y"]
    for column, words in (("frame", "for times"), ("POSITION_X", "for positions")):
        texts = adata.copy()
        texts.obs[column] = "t0"
        with pytest.raises(DataError, match=f"{column} of .* taken {words}"):
            follow_tracks(texts, "leiden", time="frame", positions=places)
    del adata.obs["frame"]
    with pytest.raises(InputError, match="name it as time"):
        follow_tracks(adata, "leiden", track="track_id")
