package workflows_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

const accountID = "0123456789abcdef"

// account is the workflow of an account in a test, with the runs that it wakes.
type account struct {
	env    *testsuite.TestWorkflowEnvironment
	began  time.Time
	gone   string   // a run that has ended
	woken  []string // run@seconds, with ! if it may make the probe
	onWake func(m contract.AccountMessage)
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{env: workflows.NewTestEnvironment()}
	a.began = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	a.env.SetStartTime(a.began)
	a.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: contract.AccountPrefix + accountID})
	a.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, "", contract.AccountWake, mock.Anything).Return(
		func(_, id, _, _ string, arg any) error {
			m := arg.(contract.AccountMessage)
			if id == a.gone {
				return errors.New("unknown external workflow execution")
			}
			mark := ""
			if m.Probe {
				mark = "!"
			}
			a.woken = append(a.woken, fmt.Sprintf("%s%s@%.0f", id, mark, a.env.Now().Sub(a.began).Seconds()))
			if a.onWake != nil {
				a.onWake(m)
			}
			return nil
		})
	return a
}

func (a *account) after(d time.Duration, kind string, m contract.AccountMessage) {
	m.Account = accountID
	a.env.RegisterDelayedCallback(func() { a.env.SignalWorkflow(kind, m) }, d)
}

func (a *account) shut(at time.Duration, runID string, number int64, until time.Duration) {
	a.after(at, contract.AccountShut, contract.AccountMessage{Run: runID, Number: number,
		Until: run.Time(a.began.Add(until))})
}

func (a *account) completes(t *testing.T) {
	t.Helper()
	a.env.ExecuteWorkflow(workflows.Account, workflows.AccountInput{})
	require.True(t, a.env.IsWorkflowCompleted())
	require.NoError(t, a.env.GetWorkflowError())
}

// TestAccountLeasesTheProbe: at the reset one run may make a call; when the provider answers, all others.
func TestAccountLeasesTheProbe(t *testing.T) {
	a := newAccount(t)
	a.shut(0, "a", 1, 100*time.Second)
	a.shut(0, "b", 1, 100*time.Second)
	a.shut(0, "c", 1, 90*time.Second)
	a.after(110*time.Second, contract.AccountStarted, contract.AccountMessage{Run: "a", Number: 1})
	a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "a", Number: 1})
	a.completes(t)
	require.ElementsMatch(t, []string{"a!@100", "a@120", "b@120", "c@120"}, a.woken)
}

// TestLeasePassesOn when its run waits, makes no call, has ended, or starts nothing in two minutes.
func TestLeasePassesOn(t *testing.T) {
	for _, row := range []struct {
		name string
		does func(a *account)
		want []string
	}{
		{"it makes no call", func(a *account) {
			a.after(110*time.Second, contract.AccountLeft, contract.AccountMessage{Run: "a", Number: 1})
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 1})
		}, []string{"a!@100", "b!@110", "b@120", "c@120"}},
		{"it has ended", func(a *account) {
			a.gone = "a"
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 1})
		}, []string{"b!@100", "b@120", "c@120"}},
		{"it waits again", func(a *account) {
			a.shut(110*time.Second, "a", 1, 100*time.Second)
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 1})
		}, []string{"a!@100", "b!@110", "b@120", "c@120", "a@120"}},
		{"it does not start", func(a *account) {
			a.after(230*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 1})
		}, []string{"a!@100", "b!@220", "b@230", "c@230", "a@230"}},
		{"it starts, and does not answer", func(a *account) {
			a.after(200*time.Second, contract.AccountStarted, contract.AccountMessage{Run: "a", Number: 1})
			a.after(330*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 1})
		}, []string{"a!@100", "b!@320", "b@330", "c@330", "a@330"}},
		{"it meets the next limit", func(a *account) {
			a.shut(110*time.Second, "a", 2, 200*time.Second)
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "a", Number: 1})
			a.after(210*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 2})
		}, []string{"a!@100", "b!@200", "b@210", "c@210", "a@210"}},
		{"all leave", func(a *account) {
			for _, id := range []string{"a", "b", "c"} {
				a.after(50*time.Second, contract.AccountLeft, contract.AccountMessage{Run: id, Number: 1})
			}
		}, nil},
		{"it is not a message of a limit", func(a *account) {
			a.after(time.Second, contract.AccountShut, contract.AccountMessage{Run: "d", Number: 9, Until: "soon"})
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "a", Number: 1})
		}, []string{"a!@100", "a@120", "b@120", "c@120"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := newAccount(t)
			for _, id := range []string{"a", "b", "c"} {
				a.shut(0, id, 1, 100*time.Second)
			}
			row.does(a)
			a.completes(t)
			require.ElementsMatch(t, row.want, a.woken)
		})
	}
}
