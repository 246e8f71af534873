package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/run"
)

const outagePipeline = `pipeline: outages
agent: {run: [AGENT], reply: text, env: [PASSBOOK_CALL_LOG]}
limits: {attempts: 3, backoff: {first: 10ms, factor: 1, max: 10ms}}
artifact: {file: artifact.html, seed: seed.html}
roles:
  reader: {prompt: read.md, gives: report}
  writer: {prompt: read.md, gives: artifact}
stages:
  - name: read
    steps: [{role: reader}, {role: writer}, {role: reader}, {role: writer}, {role: reader}, {role: writer}, {role: reader}, {role: writer}]
`

// outageAgent answers in plain text. Its third and fifth call end when the store is away; the eighth leaves a directory
// in place of the page.
const outageAgent = `#!/bin/sh
log=$(dirname "$0")/calls
echo start >> "$log"
n=$(wc -l < "$log" | tr -d ' ')
case $n in
3|5) touch "$(dirname "$0")/away" ;;
8) rm artifact.html; mkdir artifact.html; echo "I replaced it."; exit ;;
esac
if [ -e artifact.html ]; then printf '<!DOCTYPE html>\n<html>%s</html>\n' "$n" > artifact.html; fi
echo "Reply $n."
`

// TestTextAnswersOfAnOutageArePaidForOnce: the store is away when two calls have been answered, and in the second
// outage the worker is killed. A later call leaves a directory as the artifact, which costs it one attempt. It takes
// about 12 s.
func TestTextAnswersOfAnOutageArePaidForOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	away := filepath.Join(folder, "away")
	h := newEnv(t, "PASSBOOK_STORE="+failing(t, fakes3.Start(t), away))
	for name, text := range map[string]string{
		"outages.yaml": strings.Replace(outagePipeline, "AGENT", filepath.Join(folder, "agent.sh"), 1),
		"agent.sh":     outageAgent, "read.md": "Read it.\n", "seed.html": "<!DOCTYPE html>\n<html>0</html>\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700))
	}
	dir := h.dir("run")
	h.starter("run", "--config", filepath.Join(folder, "outages.yaml"), "--output-dir", dir, "--detach")
	for _, killed := range []bool{false, true} {
		failures := h.logged(failedPass)
		until(t, "the store is away", func() bool { _, err := os.Stat(away); return err == nil })
		h.logs(failedPass, failures, 2)
		if killed {
			h.kill(h.worker())
			before := h.logged(noStore)
			h.starter("server", "start")
			h.logs(noStore, before, 1)
		}
		require.NoError(t, os.Remove(away))
	}
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	calls, err := os.ReadFile(filepath.Join(folder, "calls"))
	require.NoError(t, err)
	require.Equal(t, 9, bytes.Count(calls, []byte("\n")), "eight passes, and one more attempt")
	complete(t, dir)
}

// failing is a store on S3 that refuses everything while the file is there.
func failing(t *testing.T, store, file string) string {
	t.Helper()
	bucket, err := url.Parse(store)
	require.NoError(t, err)
	values := bucket.Query()
	target, err := url.Parse(values.Get("endpoint"))
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(file); err == nil {
			http.Error(w, "the store is away", http.StatusForbidden) // a code that clients do not try again
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	values.Set("endpoint", server.URL)
	bucket.RawQuery = values.Encode()
	return bucket.String()
}

var (
	failedPass = regexp.MustCompile(`Activity error.*ActivityType=RunPass`)
	noStore    = regexp.MustCompile(`this host does not reach the store`)
)

// logs waits until the worker has logged n more lines of a kind than before.
func (h *environment) logs(kind *regexp.Regexp, before, n int) {
	h.t.Helper()
	until(h.t, fmt.Sprintf("the worker logs %s", kind), func() bool { return h.logged(kind) >= before+n })
}

func (h *environment) logged(kind *regexp.Regexp) int {
	h.t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.state(), "worker", "worker.log"))
	require.NoError(h.t, err)
	return len(kind.FindAll(raw, -1))
}
