"""A button that tests whether two selected clusters are one group, and the answer."""

from __future__ import annotations

from qtpy.QtWidgets import QWidget

from napari_embedding_game.session.firmness import make_separation_job
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.style.form_widgets import TextLabel
from napari_embedding_game.ui.style.layouts import push_button, vertical_box
from napari_embedding_game.ui.tasks.errors import call_or_show_error
from napari_embedding_game.ui.tasks.worker import PaneJobRunner

ASK, LOOKING = "Are these two one group?", "Looking at what lies between them …"
TIP = (
    "Tests whether points are missing where the two meet in the data, next to what any "
    "single group has there. Two groups may still be two samples, or ends of a curved "
    "development. Points of other clusters count where they lie between the two."
)


class TwoClusters(QWidget):
    """Tests whether two selected clusters are one group, and shows the answer.

    Shown while two clusters are selected; the owner calls :meth:`update_to_selection`.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.ask = push_button(ASK, TIP, self._on_ask, "link")
        self.answer = TextLabel(role="plain")
        say = self.answer.show_text
        self._job = PaneJobRunner(self, LOOKING, lambda result: say(str(result)), say)
        self._source: tuple[object, ...] = ()
        """The clustering, and the ids of the selected clusters, of the answer."""
        self.setLayout(vertical_box(self.ask, self.answer, spacing=0))

    def update_to_selection(self) -> None:
        """Clear an answer that is out of date, and show this for two selected clusters.

        If the clustering or the selected clusters changed, the answer is cleared and
        its test is stopped.  This is shown only for exactly two selected clusters,
        while the map is at rest: no run moves its points or is being prepared.
        """
        session = self._session
        source = session.clusters.clustering, session.selection.clusters
        if source != self._source:
            self._source = source
            self._job.stop()
            self.answer.show_text()
        is_pair = len(session.selection.clusters) == 2
        self.setVisible(is_pair and not session.is_moving)

    def _on_ask(self) -> None:
        """Test in the background whether the selected clusters are one group.

        A refusal is shown as the answer.
        """
        of = self._session, self._session.selection.clusters
        job = call_or_show_error(self.answer.show_text, make_separation_job, *of)
        if job is not None:
            self._job.submit(job)
