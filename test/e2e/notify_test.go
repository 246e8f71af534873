package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// hook is a webhook with its own answers to the first messages. It accepts all others.
type hook struct {
	mu    sync.Mutex
	first []func(w http.ResponseWriter)
	got   []contract.Notice // every message that arrived, taken or not
	keys  []string
}

func (k *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var n contract.Notice
	_ = json.Unmarshal(raw, &n)
	k.mu.Lock()
	var do func(http.ResponseWriter)
	if len(k.got) < len(k.first) {
		do = k.first[len(k.got)]
	}
	k.got, k.keys = append(k.got, n), append(k.keys, r.Header.Get("Idempotency-Key"))
	k.mu.Unlock()
	if do != nil {
		do(w)
	}
}

// of returns the ids of the messages about one kind of event, in the order in which they arrived.
func (k *hook) of(event string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var ids []string
	for i, n := range k.got {
		if n.Event == event {
			ids = append(ids, k.keys[i])
		}
	}
	return ids
}

// notifying begins a run that asks and notifies a webhook, whose address is in the environment alone.
func (h *environment) notifying(k *hook) string {
	h.t.Helper()
	server := httptest.NewServer(k)
	h.t.Cleanup(server.Close)
	h.env = append(h.env, "TEAM_HOOK="+server.URL)
	config := h.definition(h.dir("notifying"), `pipeline: notifies
agent: {run: [sh, -c, "cat >/dev/null; echo Greet the world."], reply: text}
notify: [{webhook_env: TEAM_HOOK, timeout: 1s}]
roles: {planner: {prompt: plan.md, gives: report}}
stages: [{name: plan, steps: [{role: planner}, {ask: 'Is this the right plan?'}]}]
`, map[string]string{"plan.md": "Plan it.\n"})
	dir := h.dir("run")
	h.starter("run", "--config", config, "--output-dir", dir, "--detach")
	return dir
}

// TestNotificationSurvivesTheWorker kills the worker when a notice has arrived and is not recorded yet: it is sent
// again with the same id. Then the webhook is down. The run waits for neither.
func TestNotificationSurvivesTheWorker(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	k, killed := &hook{}, make(chan struct{})
	k.first = []func(http.ResponseWriter){
		func(http.ResponseWriter) { h.kill(h.worker()); close(killed) },
		func(w http.ResponseWriter) { http.Error(w, "down", http.StatusBadGateway) },
		func(w http.ResponseWriter) { http.Error(w, "still down", http.StatusBadGateway) },
	}
	dir := h.notifying(k)
	until(t, "the webhook has the question", func() bool { return len(k.of("question")) > 0 })
	until(t, "the run asks", func() bool { return statusIs(dir, run.AwaitingPhaseHandoff) })
	<-killed // the next line starts another worker
	h.starter("decide", dir, "--action", "continue")
	until(t, "the run is over", func() bool { return statusIs(dir, run.Done) })
	until(t, "the webhook has the end", func() bool { return len(k.of("end")) > 0 })
	until(t, "the webhook has the question again", func() bool { return len(k.of("question")) >= 2 })

	asked := k.of("question")
	for _, id := range asked {
		require.Equal(t, asked[0], id, "the same message has the same id")
	}
	require.Equal(t, metaOf(t, dir).RunID+"/", asked[0][:37])
	for _, e := range eventsOf(t, dir) {
		require.NotEqual(t, run.KindErrorNoted, e.Kind, "every notice was delivered")
	}
}
