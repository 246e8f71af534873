package run

// DeliveryCompleted records what became of a delivery.
type DeliveryCompleted struct {
	ID        string `json:"id,omitempty"` // the question that was decided; empty: none was asked
	Action    string `json:"action"`
	Delivered bool   `json:"delivered"`
	Diff      string `json:"diff,omitempty"`   // digest of the diff; empty: there is none
	Commit    string `json:"commit,omitempty"` // what was made of it
	To        string `json:"to,omitempty"`     // branch or checkout
	Target    string `json:"target,omitempty"` // the branch, or the checkout's folder
	Files     int    `json:"files,omitempty"`
	Message   string `json:"message,omitempty"` // why nothing was delivered
	Result    string `json:"result,omitempty"`  // digest of what was promoted

	Pull   int    `json:"pull,omitempty"`   // number of the pull request, whose address is Target
	Branch string `json:"branch,omitempty"` // of the pull request
}

// Effect is payload of effect.reused and effect.blocked: an outside call that a replay did not make again, or not
// without being asked.
type Effect struct {
	Step   string  `json:"step,omitempty"`
	Call   string  `json:"call"`
	Class  string  `json:"class"`            // none, read, write or external_action
	Policy string  `json:"policy"`           // use_recorded_result, reexecute or require_human
	Status string  `json:"status,omitempty"` // reused or blocked
	Result string  `json:"result,omitempty"` // id of the recorded call
	Source string  `json:"source_run_id,omitempty"`
	USD    float64 `json:"usd,omitempty"` // what the recorded call had cost; it is not paid again
}

// EffectClass returns the class of a pass whose step declares none: changes and artifacts are writes, a report is read,
// and a command may do anything.
func (p Pass) EffectClass() string {
	switch p.Gives {
	case "outcome":
		return EffectExternal
	case "report":
		return EffectRead
	}
	return EffectWrite
}

// Classes of outside effects.
const (
	EffectNone     = "none"
	EffectRead     = "read"
	EffectWrite    = "write"
	EffectExternal = "external_action"
)
