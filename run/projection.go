package run

// Projection is the outcome of writing a batch of the journal to a run directory. It is a result, not an error: the
// workflow decides on it.
type Projection string

// Projections.
const (
	ProjectionWritten  Projection = "written"  // the lines are on disk, and everything derived from them
	ProjectionGap      Projection = "gap"      // the directory ends before the lines begin; nothing written
	ProjectionDiverged Projection = "diverged" // the directory holds other lines there; nothing written, nothing cut
	ProjectionStale    Projection = "stale"    // a later epoch owns the directory; nothing written
	ProjectionDamaged  Projection = "damaged"  // lines on disk, or segments, are not what was written; nothing written
	ProjectionFinal    Projection = "final"    // the directory has another end of the run; nothing written
)
