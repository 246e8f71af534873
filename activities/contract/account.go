package contract

// An account is shared by all runs whose calls it pays for. When its provider answers no more, one workflow for each
// account wakes its runs. Its messages carry no more than the time of the next call: the file of the account on the
// host decides whether a call is made.

// AccountWorkflow is the type of the workflow of an account.
const AccountWorkflow = "Account"

// StatusQuery is the query of a run's workflow whose answer is its folded state.
const StatusQuery = "status"

// AccountPrefix is the prefix of the ids of these workflows.
const AccountPrefix = "account/"

// Signals to the workflow of an account.
const (
	AccountShut    = "shut"    // an AccountMessage: the run waits
	AccountStarted = "started" // the run that was leased the probe makes its call
	AccountOpened  = "opened"  // the provider answers
	AccountLeft    = "left"    // the run makes no call
)

// AccountWake is the signal to a run: an [AccountMessage] whose run is the receiver.
const AccountWake = "account"

// ProbeNow is the number of a probe that an operator asks for: the call is made although the account is shut.
const ProbeNow = -1

// AccountMessage is about one limit of an account.
type AccountMessage struct {
	Account string `json:"account"` // id
	Number  int64  `json:"number"`  // of the limit; messages of earlier ones are ignored
	Run     string `json:"run"`
	Until   string `json:"until,omitempty"` // of shut: when the provider answers again
	Probe   bool   `json:"probe,omitempty"` // of a wake: only this run may make a call
}
