package run

// ClaimVersion is the version of run.json.
const ClaimVersion = 1

// Claim is run.json: whose directory this is. It is created exclusively, before the workflow starts, and never changed.
type Claim struct {
	Version    int    `json:"version"`
	RunID      string `json:"run_id"` // also the workflow's id
	ThreadID   string `json:"thread_id"`
	CreatedAt  string `json:"created_at"`
	Pipeline   string `json:"pipeline"`
	ConfigHash string `json:"config_hash"`
	Store      string `json:"store"` // bucket URL
	Host       string `json:"host"`  // id of the host that the directory is on
	Namespace  string `json:"namespace"`
	TaskQueue  string `json:"task_queue"`
	Cluster    string `json:"cluster"`           // id of the Temporal cluster that the run was started on
	Embedded   bool   `json:"embedded"`          // the cluster is the embedded server of that host
	Address    string `json:"address,omitempty"` // of that cluster, as the start was told it; empty: embedded, or not recorded

	SourceRun        string `json:"source_run_id,omitempty"` // of a replay or a fork
	SourceCheckpoint string `json:"source_checkpoint_id,omitempty"`
	Mode             string `json:"mode,omitempty"` // replay or fork

	Schedule Scheduled `json:"schedule,omitzero"` // that started it
}

// Scheduled says which occurrence of which schedule a run is.
type Scheduled struct {
	Name      string `json:"name"`
	At        string `json:"at"`        // when it was due
	Execution string `json:"execution"` // of the workflow that started it
}
