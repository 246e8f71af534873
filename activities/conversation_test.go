package activities

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/run"
)

// remember stores a conversation as claude does: that of the session which it continues, and one more line. Without the
// file of that session it refuses.
const remember = `p=$HOME/.claude/projects/$(pwd -P | sed 's/[^A-Za-z0-9]/-/g'); mkdir -p "$p"
from=$(sed -n 's/.*--resume \([^ ]*\) --fork-session.*/\1/p' "$d/args-$n")
old=; [ -z "$from" ] || { [ -f "$p/$from.jsonl" ] || refuse; old=$(sed "s/$from/s-$n/" "$p/$from.jsonl"); }
session "s-$n"; request "m$n"; { [ -z "$old" ] || echo "$old"; echo "s-$n said $n"; } > "$p/s-$n.jsonl"
session_text() { tr '\n' ' ' < "$p/s-$n.jsonl"; }
`

// conversing is a harness whose role reader continues its session. Each play is one start.
func conversing(t *testing.T, plays ...string) *harness {
	t.Helper()
	h := claude(t)
	t.Setenv("HOME", h.dir)
	for i, play := range plays {
		h.play(i+1, remember+play)
	}
	h.acts.cfg.StateDir = filepath.Join(h.dir, "state")
	h.define("{prompt: reader.md, gives: report}", "{prompt: reader.md, gives: report, session: continue}")
	h.in.RunID = "run-1"
	return h
}

// next asks the next question of the role, after a result.
func (h *harness) next(round string, after *run.KeptSession) {
	h.in.Call, h.in.Attempt, h.in.Session = "run-1/g0.002."+round+".-.1", 1, after
}

// said returns the reply of the next call, which is accepted.
func (h *harness) said() (string, *run.KeptSession, run.Validation) {
	h.t.Helper()
	res := h.result()
	require.Equal(h.t, run.CategoryOK, res.Outcome, "%s %s", res.Message, res.Diagnostics)
	reply := must(blobs.Get(h.t.Context(), h.s, res.Reply.Digest))(h.t)
	return strings.TrimSpace(string(reply)), res.Session, res.Validation
}

const tell = `answer "$(session_text)"`

// TestRoleContinuesItsSession: the next call of a role knows what the last accepted one did, and nothing of tries that
// failed, or of what was done with that session later.
func TestRoleContinuesItsSession(t *testing.T) {
	h := conversing(t, tell, `answer ""`, tell, tell)
	first, kept, _ := h.said()
	require.Equal(t, "s-1 said 1", first)
	require.Equal(t, "s-1", kept.ID)
	h.next("2", kept)
	res := h.result()
	require.Equal(t, run.CategoryOutputEmpty, res.Outcome, res.Message)
	require.Nil(t, res.Session, "a failed try is not part of the session")
	require.NoError(t, os.WriteFile(filepath.Join(h.projectOf(1), "s-1.jsonl"), []byte("continued by hand"), 0o600))
	h.again()
	second, kept, validation := h.said()
	require.Equal(t, "s-3 said 1 s-3 said 3", second)
	require.Empty(t, validation.Warnings)
	require.Contains(t, h.given("prompt", 3), "Your working directory is now "+h.given("pwd", 3))
	require.Contains(t, h.given("prompt", 3), "Do it.")
	require.NotEqual(t, h.given("pwd", 1), h.given("pwd", 3))
	h.next("3", kept)
	third, _, _ := h.said()
	require.Equal(t, "s-4 said 1 s-4 said 3 s-4 said 4", third)
	copies := must(filepath.Glob(filepath.Join(h.dir, ".claude", "projects", "*", "*-*-*-*.jsonl")))(t)
	require.Empty(t, copies, "no copy is left")
	h.noScratch()
	file := filepath.Join(h.dir, "state", "sessions", "run-1", "s-1")
	require.Equal(t, os.FileMode(0o600), must(os.Stat(file))(t).Mode())
}

// projectOf returns where the sessions of a start are.
func (h *harness) projectOf(start int) string {
	found := must(filepath.Glob(filepath.Join(h.dir, ".claude", "projects", "*", "s-1.jsonl")))(h.t)
	require.NotEmpty(h.t, found)
	return filepath.Dir(found[0])
}

// TestMissingSessionIsRestarted: the call is made with its own prompt, and a warning contains the reason.
func TestMissingSessionIsRestarted(t *testing.T) {
	for name, row := range map[string]struct {
		damage func(*harness)
		plays  []string
		why    string
	}{
		"its file was removed": {func(h *harness) {
			require.NoError(h.t, os.RemoveAll(filepath.Join(h.dir, "state", "sessions")))
		}, []string{tell, tell}, "this host has no file of the session"},
		"another host": {func(h *harness) { h.acts.cfg.Host = "there" }, []string{tell, tell},
			"its file is on another host, here"},
		"the agent refuses": {func(*harness) {}, []string{tell, "refuse", tell}, "the agent did not find it"},
		"no record of the call": {func(h *harness) {
			h.in.Session.Call = "run-1/g0.002.9.-.1.aaaaaaaaaaaa"
		}, []string{tell, tell}, "the record of its call was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := conversing(t, row.plays...)
			_, kept, _ := h.said()
			h.next("2", kept)
			row.damage(h)
			reply, again, validation := h.said()
			last := len(row.plays)
			require.NotContains(t, reply, "said 1")
			require.Equal(t, "Do it.", h.given("prompt", last))
			require.Empty(t, h.given("args", last))
			require.Len(t, validation.Warnings, 1)
			require.Contains(t, validation.Warnings[0], "session s-1 is not continued: ")
			require.Contains(t, validation.Warnings[0], row.why)
			require.NotNil(t, again, "the next call continues this one")
			h.noScratch()
		})
	}
}

// TestAnswerWithoutSessionFileIsAccepted: the answer counts, and a warning announces that the next call begins a new session.
func TestAnswerWithoutSessionFileIsAccepted(t *testing.T) {
	h := conversing(t, `rm "$p/s-1.jsonl"; answer Done.`)
	reply, kept, validation := h.said()
	require.Equal(t, "Done.", reply)
	require.Nil(t, kept)
	require.Len(t, validation.Warnings, 1)
	require.Contains(t, validation.Warnings[0], "the next call of the role begins a new session")
}

// TestInterruptedCallContinuesWithinTheSession: the delivery after an interruption continues what that one did.
func TestInterruptedCallContinuesWithinTheSession(t *testing.T) {
	h := conversing(t, tell, "echo begun > notes.txt; sleep 60", tell)
	_, kept, _ := h.said()
	h.next("2", kept)
	h.loseAfter("notes.txt")
	second, _, _ := h.said()
	require.Equal(t, "s-3 said 1 s-3 said 2 s-3 said 3", second)
	require.Contains(t, h.given("prompt", 3), "You were interrupted")
	require.Equal(t, h.given("pwd", 2), h.given("pwd", 3))
	h.noScratch()
}

// TestSessionWithoutFileYet: a call that was killed before claude stored its copy of the session continues the one
// before.
func TestSessionWithoutFileYet(t *testing.T) {
	h := conversing(t, tell, `rm "$p/s-2.jsonl"; echo begun > notes.txt; sleep 60`, tell)
	_, kept, _ := h.said()
	h.next("2", kept)
	h.loseAfter("notes.txt")
	second, _, _ := h.said()
	require.Equal(t, "s-3 said 1 s-3 said 3", second)
}

// TestKeptSessionOfReplay: an answer that was copied from another run keeps its session.
func TestKeptSessionOfReplay(t *testing.T) {
	h := conversing(t, tell, tell)
	_, kept, _ := h.said()
	ans := must(h.ledger().Result(t.Context()))(t)
	copied := must(copyAnswer(t.Context(), calls.Ledger{Store: h.s, Call: "run-2/g0.002.1.-.1.aaaaaaaaaaaa"}, ans))(t)
	again := keptSession(copied)
	require.Equal(t, kept.Digest, again.Digest)
	require.Equal(t, "run-2/g0.002.1.-.1.aaaaaaaaaaaa", again.Call)
	h.next("2", again)
	h.in.Call = "run-2/g0.002.2.-.1"
	second, _, _ := h.said()
	require.Equal(t, "s-2 said 1 s-2 said 2", second)
}

// TestFirstDeliveryMayContinueASession: that of a call which an operator interrupted with an instruction. A worker that
// joins it reads the files in the directory of the session, not in the empty one of the delivery.
func TestFirstDeliveryMayContinueASession(t *testing.T) {
	h := claude(t)
	l := h.ledger()
	session := &calls.Session{ID: "s-1", Host: "here", Work: filepath.Join(h.dir, "scratch", "earlier", "1", calls.WorkDir)}
	require.NoError(t, l.Claim(t.Context(), calls.Claim{Version: calls.Version, Call: l.Call, Session: session}, 1))
	joined, err := h.acts.claimed(t.Context(), l, h.in, 1, filepath.Join(h.dir, "scratch", "call", "1"))
	require.NoError(t, err)
	require.Equal(t, session.Work, joined.work)
	require.Equal(t, session, joined.session)
}
