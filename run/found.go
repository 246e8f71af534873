package run

// What a start decides, as the decision log calls it (requirement 002 §3.1). A start that finds a run and leaves it as it
// is prints what it has found.
const (
	FreshStart = "fresh-start"
	ResumeRun  = "resume"
)

// ArchivedState ends the warning of a start that archived the run of its directory: the reason of its fresh start.
const ArchivedState = "Archived old state. Starting fresh."
