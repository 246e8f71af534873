package run

// ClaimVersion is the version of run.json.
const ClaimVersion = 1

// Claim is run.json: the run to which the directory belongs. It is created exclusively, before the workflow starts, and
// never changed.
type Claim struct {
	Version    int    `json:"version"`
	RunID      string `json:"run_id"` // also the workflow ID
	ThreadID   string `json:"thread_id"`
	CreatedAt  string `json:"created_at"`
	Pipeline   string `json:"pipeline"`
	ConfigHash string `json:"config_hash"`
	Store      string `json:"store"` // bucket URL
	Host       string `json:"host"`  // ID of the directory's host
	Namespace  string `json:"namespace"`
	TaskQueue  string `json:"task_queue"`
	Cluster    string `json:"cluster"`  // ID of the Temporal cluster on which the run was started
	Embedded   bool   `json:"embedded"` // the cluster is the embedded server of that host
	// address of that cluster at the start; empty: embedded, or not recorded
	Address string `json:"address,omitempty"`

	SourceRun        string `json:"source_run_id,omitempty"` // of a replay or a fork
	SourceCheckpoint string `json:"source_checkpoint_id,omitempty"`
	Mode             string `json:"mode,omitempty"` // replay or fork

	// aliases of a run across projects: the folders with the runs of its projects
	Projects []string   `json:"projects,omitempty"`
	MemberOf Membership `json:"member_of,omitzero"` // the run across projects that it belongs to
}
