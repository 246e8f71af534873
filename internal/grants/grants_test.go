package grants

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/run"
)

func load(t *testing.T, s config.Settings) *Key {
	t.Helper()
	if s.StateDir == "" {
		s.StateDir = t.TempDir()
	}
	k, err := Load(s)
	require.NoError(t, err)
	return k
}

// inputs are granted inputs of every activity.
func inputs(k *Key) map[string]contract.Granted {
	t := contract.Target{RunID: "run-1", Dir: "/runs/1", Store: "file:///store"}
	t.Grant = k.Sign(t.Permission())
	plan, other := k.Plan(t, "plan", "inputs"), k.Plan(t, "next", "inputs")
	tree := contract.Tree{PlanUse: plan}
	examine := contract.ExamineInput{RunID: "run-1", Agents: []contract.AgentAsked{{Run: []string{"claude", "-p"}}}}
	examine.Grant = k.Sign(examine.Permission())
	return map[string]contract.Granted{
		contract.Open: contract.OpenInput{Target: t, Epoch: 2,
			EpochGrant: k.Sign(contract.EpochPermission("run-1", 2, ""))},
		contract.Project:        contract.ProjectInput{Target: t},
		contract.Rebuild:        contract.RebuildInput{Target: t},
		contract.ArchiveSegment: contract.ArchiveSegmentInput{Target: t},
		contract.Inspect:        contract.InspectInput{Target: t, Tree: &tree},
		contract.SyncWorkspace:  contract.SyncWorkspaceInput{Target: t, Tree: tree},
		contract.Deliver:        contract.DeliverInput{Target: t, PlanUse: plan},
		contract.Notify:         contract.NotifyInput{Target: t, PlanUse: plan},
		contract.Rehome:         contract.RehomeInput{Target: t, To: "/new"},
		contract.ReadRound:      contract.RoundInput{RunID: t.RunID, Store: t.Store, PlanUse: plan},
		contract.Compose: contract.ComposeInput{RunID: t.RunID, Store: t.Store,
			At: contract.StepRef{PlanUse: plan}},
		contract.RunPass: contract.PassInput{RunID: t.RunID, Store: t.Store, At: contract.StepRef{PlanUse: plan},
			Tree: &tree},
		contract.Turn: contract.TurnInput{Project: contract.ProjectInput{Target: t}, Call: contract.PassInput{
			RunID: t.RunID, Store: t.Store, At: contract.StepRef{PlanUse: plan}}},
		contract.TakeScreenshots: contract.ShotsInput{RunID: t.RunID, Store: t.Store, PlanUse: plan},
		contract.FindCheckpoint:  contract.CheckpointInput{RunID: t.RunID, Store: t.Store, PlanUse: plan},
		contract.Amend: contract.AmendInput{
			RunID: t.RunID, Store: t.Store, Old: run.PlanRef{Plan: "plan", Inputs: "inputs"}, OldGrant: plan.PlanGrant,
			New: run.PlanRef{Plan: "next", Inputs: "inputs"}, NewGrant: other.PlanGrant,
		},
		contract.ExamineAgents: examine,
	}
}

func TestGrantedInputsAreAllowed(t *testing.T) {
	k := load(t, config.Settings{})
	for name, in := range inputs(k) {
		require.NoError(t, k.Check(in), name)
		require.NotEmpty(t, in.Permissions(), name)
	}
}

func TestInputsOfAnotherKeyAreRefused(t *testing.T) {
	k, other := load(t, config.Settings{}), load(t, config.Settings{})
	for name, in := range inputs(other) {
		var refused *RefusedError
		require.ErrorAs(t, k.Check(in), &refused, name)
		require.False(t, refused.Missing)
		require.Contains(t, refused.Error(), "was not granted with the key "+k.from)
	}
}

// TestChangedInputsAreRefused: a grant is for one value.
func TestChangedInputsAreRefused(t *testing.T) {
	k := load(t, config.Settings{})
	all := inputs(k)
	open, pass := all[contract.Open].(contract.OpenInput), all[contract.RunPass].(contract.PassInput)
	dir, store, runID, epoch := open, open, open, open
	dir.Dir, store.Store, runID.RunID, epoch.Epoch = "/home", "s3://theirs", "run-2", 3
	plan, inputsOf, tree, passStore := pass, pass, pass, pass
	plan.At.Plan, inputsOf.At.Inputs, passStore.Store = "theirs", "theirs", "s3://theirs"
	tree.Tree = &contract.Tree{PlanUse: contract.PlanUse{Plan: "theirs", PlanGrant: pass.Tree.PlanGrant}}
	amend := all[contract.Amend].(contract.AmendInput)
	amend.New.Plan = "theirs"
	examine := all[contract.ExamineAgents].(contract.ExamineInput)
	examine.Agents = []contract.AgentAsked{{Run: []string{"/tmp/theirs"}}}
	for name, in := range map[string]contract.Granted{"directory": dir, "store": store, "run": runID, "epoch": epoch,
		"plan": plan, "inputs": inputsOf, "plan of the tree": tree, "store of a call": passStore, "amendment": amend,
		"agents": examine} {
		require.Error(t, k.Check(in), name)
	}
	require.ErrorContains(t, k.Check(contract.ProjectInput{Target: contract.Target{RunID: "run-1", Dir: "/runs/1"}}),
		`use of directory /runs/1 for run run-1 refused: it has no grant, because an earlier Passbook or another program `+
			`started it; continue the run with "starter resume run-1"`)
}

// TestGrantsSeparateValues: values are not concatenated.
func TestGrantsSeparateValues(t *testing.T) {
	k := load(t, config.Settings{})
	require.NotEqual(t, k.Sign(contract.Permission{Kind: "x", Values: []string{"ab", "c"}}),
		k.Sign(contract.Permission{Kind: "x", Values: []string{"a", "bc"}}))
	require.NotEqual(t, k.Sign(contract.Permission{Kind: "x", Values: []string{"a"}}),
		k.Sign(contract.Permission{Kind: "a", Values: []string{"x"}}))
}

func TestUnusableKeysAreRefused(t *testing.T) {
	s := config.Settings{StateDir: t.TempDir()}
	load(t, s)
	require.NoError(t, os.Chmod(filepath.Join(s.StateDir, File), 0o640))
	_, err := Load(s)
	require.ErrorContains(t, err, "read the key for grants: ")
	require.ErrorContains(t, err, `(mode 0640): remove it and resume open runs with "starter resume RUN"`)
	s.Grant.KeyFile = filepath.Join(s.StateDir, "none")
	_, err = Load(s)
	require.ErrorContains(t, err, "no such file")
	require.NoError(t, os.WriteFile(s.Grant.KeyFile, nil, 0o600))
	_, err = Load(s)
	require.ErrorContains(t, err, `create a key with "starter grant key"`)
}

// TestDisabledGrantsAreLimitedToTheSettings: without grants, the settings limit directories and stores.
func TestDisabledGrantsAreLimitedToTheSettings(t *testing.T) {
	k := load(t, config.Settings{Store: "file:///store", Grant: config.Grant{Disable: true, Stores: []string{"s3://b"},
		Roots: []string{"/runs"}}})
	at := func(dir, store string) contract.Granted {
		return contract.ProjectInput{Target: contract.Target{RunID: "r", Dir: dir, Store: store}}
	}
	require.NoError(t, k.Check(at("/runs/1", "file:///store")))
	require.NoError(t, k.Check(at("/runs/1", "s3://b")))
	require.ErrorContains(t, k.Check(at("/runs/1", "s3://c")), "is not that of the settings")
	require.ErrorContains(t, k.Check(at("/runs/../etc", "s3://b")), "is outside of grant.roots (/runs)")
	require.ErrorContains(t, k.Check(contract.RoundInput{RunID: "r", Store: "s3://c"}), "is not that of the settings")
}
