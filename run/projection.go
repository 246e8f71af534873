package run

// Projection is the outcome of writing a batch of the journal to a run directory. It is a result, not an error: the
// workflow decides on it.
type Projection string

// Projections. Except for the first one, nothing was written.
const (
	ProjectionWritten Projection = "written" // the lines are on disk, and everything derived from them
	ProjectionBehind  Projection = "behind"  // the directory ends before the lines begin
	ProjectionNewer   Projection = "newer"   // the directory has lines or an epoch that the execution does not know
	ProjectionDamaged Projection = "damaged" // lines on disk, or segments, are not what was written
)
