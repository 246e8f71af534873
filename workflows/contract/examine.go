package contract

// ExamineAgents is the activity that asks a worker for its agents. It is no part of a workflow.
const ExamineAgents = "ExamineAgents"

// ExamineInput asks the worker of a host for the version and the login of agents, in the environment of a run's calls.
type ExamineInput struct {
	RunID  string       `json:"run_id"` // whose environment is used; without one on the host, the worker's
	Agents []AgentAsked `json:"agents"`
}

// AgentAsked is an agent as its calls run.
type AgentAsked struct {
	Run     []string `json:"run"`
	Env     []string `json:"env,omitempty"`
	Sandbox string   `json:"sandbox,omitempty"`
	Network []string `json:"network,omitempty"`
}

// Run returns the run whose environment is used.
func (in ExamineInput) Run() string { return in.RunID }

// ExamineResult is what a worker found.
type ExamineResult struct {
	Worker string        `json:"worker"` // its identity
	Path   string        `json:"path"`   // PATH of the calls
	Agents []AgentAnswer `json:"agents"` // in the order of the question
}

// Login is what is known about the login of an agent.
type Login string

// States of a login.
const (
	LoginOK        Login = "logged_in"
	LoginMissing   Login = "logged_out"
	LoginUnknown   Login = "unchecked"  // only a call shows it
	LoginWith      Login = "with"       // a variable or file replaces it; only a call shows whether it is accepted
	LoginNotPassed Login = "not_passed" // a variable would, and calls do not get it
)

// AgentAnswer is the version and the login of an agent.
type AgentAnswer struct {
	Program string `json:"program"`
	Path    string `json:"path,omitempty"`
	Missing string `json:"missing,omitempty"` // why it cannot be started
	Version string `json:"version,omitempty"`
	Failed  string `json:"failed,omitempty"` // why it does not report a version
	Login   Login  `json:"login,omitempty"`
	With    string `json:"with,omitempty"` // name of a variable, or file
	Printed string `json:"printed,omitempty"`
	Sandbox string `json:"sandbox,omitempty"` // what restricts its calls
}
