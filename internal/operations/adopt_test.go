package operations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

const conversationID = "0b1c2d3e-0000-4000-8000-000000000001"

// talked writes a conversation of claude in a folder, and returns the adoption of it.
func talked(t *testing.T, folder string, at time.Time) (Adoption, string) {
	t.Helper()
	home := t.TempDir()
	name := strings.NewReplacer("/", "-", ".", "-", "_", "-").Replace(folder)
	path := filepath.Join(home, ".claude", "projects", name, conversationID+".jsonl")
	line := `{"type":"user","uuid":"a","message":{"content":"Fix it."},"cwd":"` + folder + `","timestamp":"` +
		at.UTC().Format(time.RFC3339Nano) + `"}` + "\n"
	write(t, filepath.Dir(path), map[string]string{filepath.Base(path): line})
	return Adoption{Program: sessions.Program{Name: "claude", Environ: []string{"HOME=" + home}}, ID: conversationID}, path
}

// adopting loads a definition that adopts a conversation.
func adopting(t *testing.T, a Adoption, text string) Definition {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"p.yaml": "pipeline: p\n" + text, "p.md": "Do it."})
	def := must(LoadFile(filepath.Join(dir, "p.yaml")))(t)
	def.Adopt = &a
	return def
}

const adoptRoles = "workspace: {git: worktree}\nroles:\n  w: {prompt: p.md, gives: changes}\n  v: {prompt: p.md, gives: report}\n" +
	"  u: {prompt: p.md, gives: report}\n"

func TestPipelineCanContinueConversation(t *testing.T) {
	a := Adoption{Program: sessions.Program{Name: "claude"}, ID: conversationID}
	for name, row := range map[string]struct{ text, want string }{
		"first role":   {"agent: claude\n" + adoptRoles + "stages: [{name: s, steps: [{role: w}]}]\n", ""},
		"after a test": {"agent: claude\n" + adoptRoles + "stages: [{name: s, steps: [{run: make}, {ask: 'Go?'}, {role: w}]}]\n", ""},
		"another agent": {"agent: codex\n" + adoptRoles + "stages: [{name: s, steps: [{role: w}]}]\n",
			"role w, which begins in pipeline p, is not of claude"},
		"a group": {"agent: claude\n" + adoptRoles + "stages: [{name: s, steps: [{together: [v, u]}, {role: w}]}]\n",
			"several roles or lanes begin at once in pipeline p, stage s"},
		"its own session": {"agent: {use: claude, args: [--no-session-persistence]}\n" + adoptRoles + "stages: [{name: s, steps: [{role: w}]}]\n",
			"the command of role w in pipeline p chooses its session itself"},
		"no role": {"agent: claude\n" + adoptRoles + "stages: [{name: s, steps: [{run: make}]}]\n",
			"pipeline p has no role in its stages"},
		"no copy": {"agent: claude\nworkspace: {dir: .}\nroles: {w: {prompt: p.md, gives: changes}}\nstages: [{name: s, steps: [{role: w}]}]\n",
			"pipeline p works on no copy of a git checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			err := adopting(t, a, row.text).CheckAdoption()
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, "nothing was started")
		})
	}
}

// TestConversationBelongsToOneCheckout: not to one above, beside or inside it.
func TestConversationBelongsToOneCheckout(t *testing.T) {
	base := must(filepath.EvalSymlinks(t.TempDir()))(t)
	root := filepath.Join(base, "repo")
	for _, dir := range []string{root, filepath.Join(root, "inner"), filepath.Join(base, "repo2")} {
		write(t, dir, map[string]string{"a.txt": "a", "sub/b.txt": "b"})
		runGit(t, dir, "init", "-q")
	}
	runGit(t, root, "add", "a.txt")
	runGit(t, root, "commit", "-qm", "base")
	require.NoError(t, os.Symlink(root, filepath.Join(base, "link")))
	for folder, want := range map[string]bool{
		root: true, filepath.Join(root, "sub"): true, filepath.Join(root, "removed"): true, filepath.Join(base, "link"): true,
		filepath.Join(root, "inner"): false, filepath.Join(base, "repo2"): false, base: false, "relative": false, "": false,
	} {
		require.Equal(t, want, OfRepository(t.Context(), root, folder), folder)
	}
	a, _ := talked(t, filepath.Join(base, "repo2"), at(0))
	err := a.CheckPlace(t.Context(), must(a.Program.Find(a.ID))(t), root)
	require.ErrorContains(t, err, "it was held in "+filepath.Join(base, "repo2"))
}

// TestAdoptionNamesWhatChangedSince its last entry, and starts nothing if the conversation is continued meanwhile.
func TestAdoptionNamesWhatChangedSince(t *testing.T) {
	root := must(filepath.EvalSymlinks(t.TempDir()))(t)
	write(t, root, map[string]string{"old.txt": "1", "new`\x1b[2J.txt": "1"})
	runGit(t, root, "init", "-q")
	runGit(t, root, "add", "--all")
	runGit(t, root, "commit", "-qm", "base")
	last := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(root, "old.txt"), last.Add(-time.Hour), last.Add(-time.Hour)))
	a, path := talked(t, root, last)
	def := adopting(t, a, "agent: claude\n"+adoptRoles+"stages: [{name: s, steps: [{role: w}]}]\n")
	state := t.TempDir()
	o := Operator{Settings: config.Settings{StateDir: state}, Host: "here"}
	claim := run.Claim{RunID: "run-1", Store: "file://" + filepath.Join(state, "store")}
	kept := must(def.copyConversation(state, "run-1"))(t)
	got := must(o.adopted(t.Context(), def, claim, kept, &run.Workspace{Source: root}))(t)
	require.Equal(t, "s w", got.Phase+" "+got.Role)
	require.Equal(t, run.EndedEarly, got.Ended)
	require.Equal(t, root, got.Folder)
	require.Nil(t, got.Limited)
	brief := must(adoptionBrief(t.Context(), kept, root))(t)
	require.Contains(t, brief, "was killed before its answer was complete")
	require.Contains(t, brief, "  - `new'[2J.txt`\n")
	require.NotContains(t, brief, "old.txt")
	require.NotContains(t, brief, "held in its folder")
	for i := range 60 {
		write(t, root, map[string]string{filepath.Join("many", string(rune('a'+i%26))+strings.Repeat("x", i)): "1"})
	}
	require.Contains(t, must(adoptionBrief(t.Context(), kept, root))(t), "  - and 11 more\n")

	require.NoError(t, os.WriteFile(path, append(must(os.ReadFile(path))(t), '\n'), 0o600))
	_, err := o.adopted(t.Context(), def, claim, kept, &run.Workspace{Source: root})
	require.ErrorContains(t, err, "it was continued while it was copied")
}

func TestWaitForLimitOfConversation(t *testing.T) {
	now := at(0)
	a := Adoption{Program: sessions.Program{Name: "claude"}, ID: conversationID, WhenLimited: true}
	def := adopting(t, a, "agent: claude\n"+adoptRoles+"stages: [{name: s, steps: [{role: w}]}]\n")
	by := must(def.adopter())(t)
	for name, row := range map[string]struct {
		ended    run.Ending
		until    time.Time
		min, max time.Duration // of the wait; 0: none
		reset    string
		age      time.Duration
	}{
		"a reset":             {run.EndedByLimit, now.Add(2 * time.Minute), 130 * time.Second, 180 * time.Second, run.Time(now.Add(2 * time.Minute)), 0},
		"a reset that passed": {run.EndedByLimit, now.Add(-time.Second), 0, 0, "", 0},
		"no reset":            {run.EndedByLimit, time.Time{}, 15 * time.Minute, 15 * time.Minute, "", time.Hour},
		"no reset, long ago":  {run.EndedByLimit, time.Time{}, 0, 0, "", 8 * 24 * time.Hour},
		"an incredible reset": {run.EndedByLimit, now.AddDate(100, 0, 0), 15 * time.Minute, 15 * time.Minute, "", 0},
		"an error":            {run.EndedByError, now.Add(time.Hour), 0, 0, "", 0},
		"an answer":           {"", time.Time{}, 0, 0, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			kept := &sessions.Adoption{Conversation: sessions.Conversation{Program: "claude", Ended: row.ended, At: now.Add(-row.age),
				Limit: limits.Limit{Kind: limits.Plan, Until: row.until}}}
			got := def.waitFor(by, kept, now)
			if row.max == 0 {
				require.Nil(t, got)
				return
			}
			until := must(time.Parse(run.TimeFormat, got.Until))(t)
			require.WithinRange(t, until, now.Add(row.min), now.Add(row.max))
			require.Equal(t, row.reset, got.Reset)
			require.Equal(t, 1, got.N)
		})
	}
}

func TestCostsBeforeAdoption(t *testing.T) {
	a := Adoption{Program: sessions.Program{Name: "claude"}, ID: conversationID}
	def := adopting(t, a, "agent: {use: claude, price: {input: 2, output: 10}}\n"+adoptRoles+"stages: [{name: s, steps: [{role: w}]}]\n")
	by := must(def.adopter())(t)
	usage := sessions.Conversation{}
	usage.Usage = append(usage.Usage, usageOf("m", run.Tokens{Input: 1e6, Output: 1e5}))
	for name, row := range map[string]struct {
		c     sessions.Conversation
		usd   float64
		known run.CostKnown
	}{
		"nothing":                 {sessions.Conversation{}, 0, run.CostExact},
		"what its program counts": {sessions.Conversation{USD: 4}, 4, run.CostExact},
		"a part":                  {sessions.Conversation{USD: 4, Unknown: true}, 4, run.CostAtLeast},
		"tokens":                  {usage, 3, run.CostAtLeast},
		"both":                    {sessions.Conversation{USD: 4, Usage: usage.Usage}, 7, run.CostAtLeast},
	} {
		got := Operator{}.spentBefore(def, by, &sessions.Adoption{Conversation: row.c})
		require.Equal(t, row.usd, got.USD, name)
		require.Equal(t, row.known, got.Known, name)
	}
	def.Plan.Agents = []pipeline.Agent{{Name: def.Plan.Agents[0].Name, Run: []string{"claude"}, Reply: "claude-stream"}}
	got := Operator{}.spentBefore(def, by, &sessions.Adoption{Conversation: usage})
	require.Equal(t, run.CostUnknown, got.Known, "no price is known for its model")
}

func usageOf(model string, tokens run.Tokens) adapter.ModelUsage {
	m := adapter.ModelUsage{Model: model}
	m.Tokens = tokens
	return m
}
