# Writes the .rds files of this folder: R 4.2.2, SeuratObject 4.1.3, SingleCellExperiment
# 1.20.0. Seurat 5 was not to be had: its classes are declared here with its slots.
suppressMessages({
  library(Matrix)
  library(SeuratObject)
  library(SingleCellExperiment)
})
cell <- 40:1 # the names are in no order
gene <- 1:12
names <- list(paste0("gene", gene), paste0("cell", cell))
counts <- Matrix(outer(gene, cell) %% 5, sparse = TRUE, dimnames = names)
logs <- counts
logs@x <- log1p(logs@x)
pca <- outer(cell, 1:4 / 10, "+")
dimnames(pca) <- list(names[[2]], paste0("PC_", 1:4))
meta <- data.frame(
  kind = factor(ifelse(cell %% 2, "odd", "even")), size = cell / 2, row.names = names[[2]]
)
one <- CreateSeuratObject(counts, meta.data = meta)
one <- SetAssayData(one, slot = "data", new.data = logs)
one[["pca"]] <- CreateDimReducObject(pca[40:1, ], key = "PC_", assay = "RNA")
one[["fov"]] <- CreateFOV(
  data.frame(x = 1:40, y = 101:140, cell = paste0("cell", 1:40)),
  type = "centroids", assay = "RNA", key = "fov_"
)
saveRDS(one, "seurat.rds")
experiment <- SingleCellExperiment(
  list(counts = counts, logcounts = logs),
  colData = DataFrame(meta), reducedDims = list(PCA = pca)
)
saveRDS(experiment, "experiment.rds", compress = "xz")

setOldClass("scalefactors")
setClass("LogMap", contains = "matrix")
setClass("Assay5", representation(layers = "list", cells = "LogMap", features = "LogMap"))
setClass("VisiumV1", representation(
  image = "array", scale.factors = "scalefactors", coordinates = "data.frame"
))
map <- function(x) new("LogMap", matrix(TRUE, length(x), 1, dimnames = list(x, "counts")))
bare <- counts
bare@Dimnames <- list(NULL, NULL)
one@assays <- list(RNA = new(
  "Assay5", layers = list(counts = bare, scale.data = as.matrix(logs)[1:3, ]),
  cells = map(names[[2]]), features = map(names[[1]])
))
scales <- structure(list(hires = 0.5, lowres = 0.25), class = "scalefactors")
places <- data.frame(imagerow = 1:40 + 100, imagecol = 1:40 + 0, row.names = paste0("cell", 1:40))
one@images <- list(slice1 = new(
  "VisiumV1", image = array(1:60 / 60, c(4, 5, 3)), scale.factors = scales,
  coordinates = places
))
saveRDS(one, "seurat5.rds")
