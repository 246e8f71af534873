package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/histories"
	"github.com/passbook-run/passbook/workflows/contract"
)

// encrypting sets the keys of all that is started from now on; current and the others are their ids.
func (h *environment) encrypting(current string, ids ...string) {
	h.t.Helper()
	var keys []string
	for _, id := range ids {
		keys = append(keys, id+"=env:KEY_"+strings.ToUpper(id))
	}
	h.env = append(h.env, "PASSBOOK_CODEC_KEY="+current, "PASSBOOK_CODEC_KEYS="+strings.Join(keys, ","))
	for name, key := range histories.Keyring {
		h.env = append(h.env, name+"="+key)
	}
}

// rawHistory is a run's history as the server keeps it.
func (h *environment) rawHistory(id string) *historypb.History {
	h.t.Helper()
	all := &historypb.History{}
	it := h.dial().GetWorkflowHistory(h.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		ev, err := it.Next()
		require.NoError(h.t, err)
		all.Events = append(all.Events, ev)
	}
	return all
}

// TestTemporalHistoryIsEncrypted runs with a key, inspects what the server stores, answers without one, and continues
// after the key was changed.
func TestTemporalHistoryIsEncrypted(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.encrypting("one", "one")
	dir := h.asksAboutThePlan("asked")
	id := metaOf(t, dir).RunID
	words := []string{"Is this the right plan?", dir, "plan.md", "planner", "KEY_ONE"}
	h.holdsNone(id, words)
	decide := func(m contract.Message) {
		require.NoError(t, h.dial().SignalWorkflow(t.Context(), id, "", contract.VerbDecide, m))
	}
	decide(contract.Message{Action: run.ActionRetryFeedback, Feedback: "say it louder"})
	h.asked(dir, 2)
	require.Equal(t, "say it louder", metaOf(t, dir).State.Decided.Feedback,
		"a message without encryption is read")

	h.starter("server", "stop")
	h.encrypting("two", "two")
	h.starter("server", "start")
	decide(contract.Message{Action: "say what"})
	until(t, "a worker without the key has tried", func() bool {
		return slices.ContainsFunc(h.rawHistory(id).Events, func(ev *historypb.HistoryEvent) bool {
			return ev.EventType == enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED
		})
	})
	d, err := h.dial().DescribeWorkflow(t.Context(), id, "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, d.Status)

	h.starter("server", "stop")
	h.encrypting("two", "two", "one")
	h.starter("server", "start")
	h.starter("decide", dir, "--action", "continue", "--note", "with the new key")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	require.Len(t, of[run.DecisionRefused](eventsOf(t, dir), run.KindDecisionRefused), 1, "no signal is lost")
	h.valid(dir)
	h.holdsNone(id, append(words, "with the new key"))
	h.rebuildsEncrypted(dir, id)
}

// holdsNone wants none of the words in a run's history, nor in the server's list of runs.
func (h *environment) holdsNone(id string, words []string) {
	h.t.Helper()
	d, err := h.dial().DescribeWorkflowExecution(h.t.Context(), id, "")
	require.NoError(h.t, err)
	shown, err := proto.Marshal(d)
	require.NoError(h.t, err)
	places := map[string][]byte{"the description of the workflow": shown}
	for _, ev := range h.rawHistory(id).Events {
		raw, err := proto.Marshal(ev)
		require.NoError(h.t, err)
		places[fmt.Sprintf("event %d (%s)", ev.EventId, ev.EventType)] = raw
	}
	for name, raw := range places {
		for _, word := range words {
			require.NotContains(h.t, string(raw), word, name)
		}
	}
}

// rebuildsEncrypted writes a lost directory again; without the retired key, the error names it.
func (h *environment) rebuildsEncrypted(dir, id string) {
	h.t.Helper()
	events := read(h.t, filepath.Join(dir, rundir.EventsFile))
	require.NoError(h.t, os.RemoveAll(dir))
	all := h.env
	h.encrypting("two", "two")
	output, code := h.try("rebuild", id, "--output-dir", dir)
	require.NotZero(h.t, code)
	require.Contains(h.t, output, `key "one" is not in codec.keys (two)`)
	h.env = all
	h.starter("rebuild", id, "--output-dir", dir)
	require.Equal(h.t, string(events), string(read(h.t, filepath.Join(dir, rundir.EventsFile))))
	h.valid(dir)
}

// TestWebUIReadsWhatIsEncrypted shows an encrypted run in the Web UI, with a codec endpoint beside it.
func TestWebUIReadsWhatIsEncrypted(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := l.Addr().String()
	go refuse(l) // the port is kept until the endpoint listens there
	h.encrypting("one", "one")
	h.env = append(h.env, "PASSBOOK_CODEC_ENDPOINT=http://"+at)
	dir := h.asksAboutThePlan("asked")
	w := h.webUI()
	closed := w.page(t, h.tab("asked", "timeline"), "Turn")
	require.NotContains(t, closed, dir)

	ctx, stop := context.WithCancel(t.Context())
	serve := h.command(ctx, "codec", "serve", "--listen", at)
	require.NoError(t, l.Close())
	require.NoError(t, serve.Start())
	t.Cleanup(func() {
		stop()
		_ = serve.Wait() // it was ended
	})
	until(t, "the endpoint answers", func() bool {
		res, err := http.Post("http://"+at+"/decode", "application/json", strings.NewReader(`{"payloads":[]}`))
		if err != nil {
			return false
		}
		require.Equal(t, http.StatusUnauthorized, res.StatusCode, "it decrypts without a token")
		return res.Body.Close() == nil
	})
	page := w.page(t, h.tab("asked", "user-metadata"), "Waiting for a decision")
	for _, text := range []string{"Is this the right plan?", "asks in " + dir} {
		require.Contains(t, page, text)
	}
	w.page(t, h.tab("asked", "timeline"), dir) // the input
	output, err := h.terminal(host.UseServer("starter") + "\ntemporal workflow query --name status --workflow-id " +
		metaOf(t, dir).RunID)
	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "awaiting_phase_handoff")
}

// refuse closes all connections to a listener until it is closed.
func refuse(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if c.Close() != nil {
			return
		}
	}
}
