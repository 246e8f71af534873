package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent/gate"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

var accountsAll = flag.Bool("accounts.all", false,
	"30 runs through three limits of their account, with the server and the worker killed while they wait")

// plan is the provider of one account in a test: after a number of answers it refuses calls for some seconds.
const plan = `#!/bin/sh
# until: when it answers again; used: answers since; left: limits to come
[ "$1" != --version ] || exit 0
cd %s
exec 9>lock; flock 9
now=$(date +%%s%%3N)
until=$(cat until); used=$(cat used); left=$(cat left)
refuse() {
	printf '{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|%%d"}\n' $((until / 1000))
	exit 1
}
if [ "$now" -lt "$until" ]; then echo "$now refused" >>log; refuse; fi
if [ "$used" -ge %d ] && [ "$left" -gt 0 ]; then
	until=$(((now / 1000 + %d) * 1000))
	echo $until >until; echo 0 >used; echo $((left - 1)) >left
	echo "$now shut $until" >>log; refuse
fi
echo $((used + 1)) >used
echo "$now begin $$" >>log
flock -u 9
sleep 0.3
echo "$(date +%%s%%3N) end $$" >>log
printf '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s","total_cost_usd":0.5,"usage":{"input_tokens":1,"output_tokens":1}}\n'
`

// provider writes the program of an account, and returns its folder and definition.
func (h *environment) provider(answers, seconds, limits int) (folder, file string) {
	h.t.Helper()
	folder = h.dir("provider")
	program := filepath.Join(folder, "claude")
	file = h.definition(folder, fmt.Sprintf(
		"pipeline: account\nagent: {run: [%s], reply: claude-json, account: max}\n"+
			"limits: {after_reset: {min: 1s, max: 3s}}\n"+ // not the default, which is up to a minute after each limit
			"roles: {worker: {prompt: task.md, gives: report}}\n"+
			"stages: [{name: work, steps: [{role: worker}, {role: worker}]}]\n", program),
		map[string]string{"claude": fmt.Sprintf(plan, folder, answers, seconds), "until": "0\n", "used": "0\n",
			"left": fmt.Sprintln(limits), "log": "", "task.md": "Do it.\n"})
	return folder, file
}

// starts starts runs on the background worker.
func (h *environment) starts(file string, n int) (dirs []string) {
	h.t.Helper()
	h.starter("server", "start")
	def, err := operations.Load(os.DirFS(filepath.Dir(file)), filepath.Base(file), file)
	require.NoError(h.t, err)
	def.Home = filepath.Dir(file)
	op := h.operator(h.dial())
	for i := range n {
		dir := h.dir(fmt.Sprintf("runs/%02d", i))
		_, err := op.Start(h.t.Context(), def, rundir.At(dir))
		require.NoError(h.t, err)
		dirs = append(dirs, dir)
	}
	return dirs
}

// accountCall is a line of the provider's log.
type accountCall struct {
	at    int64 // ms
	event string
	arg   int64
}

func accountLog(t *testing.T, folder string) (out []accountCall) {
	t.Helper()
	for line := range strings.Lines(string(read(t, filepath.Join(folder, "log")))) {
		words := append(strings.Fields(line), "0")
		at, err := strconv.ParseInt(words[0], 10, 64)
		require.NoError(t, err)
		arg, err := strconv.ParseInt(words[2], 10, 64)
		require.NoError(t, err)
		out = append(out, accountCall{at, words[1], arg})
	}
	return out
}

// TestRunsShareAnAccount: at a limit all runs of an account wait; at its reset one of them makes a call, and when the
// provider answers it, all others. No call is made before, and no attempt is used.
func TestRunsShareAnAccount(t *testing.T) {
	t.Parallel()
	runs, answers, seconds, limits := 5, 3, 3, 2
	if *accountsAll {
		runs, answers, seconds, limits = 30, 15, 10, 3
	}
	h := newEnv(t, "PASSBOOK_SANDBOX_MODE=none") // its files are outside
	folder, file := h.provider(answers, seconds, limits)
	dirs := h.starts(file, runs)
	shut := func() (n int) {
		for _, c := range accountLog(t, folder) {
			if c.event == "shut" {
				n++
			}
		}
		return n
	}
	for n := 1; *accountsAll && n <= limits; n++ {
		until(t, fmt.Sprintf("runs wait for limit %d", n), func() bool {
			return shut() >= n && slices.ContainsFunc(dirs, func(dir string) bool { return statusIs(dir, run.WaitingLimit) })
		})
		worker, server := h.worker(), h.server()
		h.kill(server)
		h.kill(worker)
		h.starter("server", "start")
	}
	for _, dir := range dirs {
		until(t, dir+" is done", func() bool { return statusIs(dir, run.Done) })
	}
	oneProbe(t, accountLog(t, folder), limits)
	for _, dir := range dirs {
		noAttemptUsed(t, dir)
	}
	sum, err := gate.Open(h.state(), "", gate.Options{Now: yesterday}).Today()
	require.NoError(t, err)
	require.InDelta(t, float64(runs), sum.Known.USD, 1e-9, "the ledger has the cost of all runs")
	require.Zero(t, sum.Reserved.Calls)
}

// atTheLimit is how long after a limit the calls that began beside the first one may still be refused.
const atTheLimit = 2 * time.Second

// oneProbe wants after each limit no call before its reset, except for those in flight, and then one call that ends
// before others begin.
func oneProbe(t *testing.T, log []accountCall, limits int) {
	t.Helper()
	met := 0
	for i, c := range log {
		if c.event != "shut" {
			continue
		}
		met++
		probe := int64(0)
		for _, next := range log[i+1:] {
			if next.event == "refused" {
				require.Less(t, next.at, c.at+atTheLimit.Milliseconds(), "a call began before the reset of limit %d", met)
				continue
			}
			if next.event == "end" && next.arg != probe {
				continue // it began before the limit
			}
			if next.event == "end" {
				break
			}
			require.Equal(t, "begin", next.event)
			require.Zero(t, probe, "a second call began after limit %d before the first was answered: %v", met, log)
			require.GreaterOrEqual(t, next.at, c.arg)
			probe = next.arg
		}
		require.NotZero(t, probe, "limit %d", met)
	}
	require.Equal(t, limits, met)
}

// noAttemptUsed wants each pass of a run to be answered in its first attempt.
func noAttemptUsed(t *testing.T, dir string) {
	t.Helper()
	left, err := look(dir, "")
	require.NoError(t, err)
	ends := 0
	for _, e := range left.Events {
		switch e.Kind {
		case run.KindPassStart:
			var p run.PassStart
			e.Decode(&p)
			require.Equal(t, 1, p.Attempt)
		case run.KindPassAttempt:
			var p run.PassAttempt
			e.Decode(&p)
			lost := p.Category == run.CategoryLost || p.Late > 0 // its worker was killed: the next one joined the call
			require.True(t, p.Limit != nil || lost, "%s: %s", p.Category, p.Message)
		case run.KindPassEnd:
			ends++
		}
	}
	require.Equal(t, 2, ends)
}
