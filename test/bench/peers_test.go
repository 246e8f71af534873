package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/test/bench/peer"
)

func TestPipelineHasOnePassForEachStep(t *testing.T) {
	for _, w := range []peer.Work{{Steps: 1}, {Steps: 56}, {Steps: 2, Wait: 1}, {Steps: 1001, Wait: 1000}} {
		w.Agent = []string{"/bin/agent", "-log=/tmp/log"}
		def, err := pipelineFor(t.TempDir(), w)
		require.NoError(t, err, w)
		require.Equal(t, w.Steps, def.Plan.Total, w)
		require.Empty(t, def.Warnings, w)
	}
	got, err := checkpointOf(993)
	require.NoError(t, err)
	require.Equal(t, "cp-S124", got)
	_, err = checkpointOf(10)
	require.ErrorContains(t, err, "no set ends before step")
}

// The loop of the table is the one engine without a server: it shows that the measurements work.
func TestLoopIsMeasured(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	agent := filepath.Join(t.TempDir(), "agent")
	require.NoError(t, build(t.Context(), ".", filepath.Dir(agent), "./agent"))
	m := trial{amounts: amounts{Latency: 1, Many: 2, Passes: 3, Steps: 8, Waiting: 2, Patience: time.Minute},
		contender: contender{name: bashName, open: newBashLoop}, agent: agent, dir: t.TempDir(),
		readings: map[figure]reading{}}
	require.NoError(t, m.open(t.Context(), "short", measureShort))
	for _, f := range []figure{figStart, figOne, figMany, figLoop} {
		require.NoError(t, m.readings[f].err, f)
		require.Positive(t, m.readings[f].value, f)
	}
	require.NoError(t, m.open(t.Context(), "long", measureLong))
	require.NoError(t, m.readings[figRestart].err)
	require.ErrorIs(t, m.readings[figRevert].err, peer.ErrNotOffered)
	require.ErrorIs(t, m.readings[figFork].err, peer.ErrNotOffered)
	require.InDelta(t, 300, m.readings[figBytes].value, 100)
}

// lazyEngine reports answers that nothing has computed.
type lazyEngine struct{ engine }

func (l lazyEngine) do(_ context.Context, q peer.Request) (peer.Reply, error) {
	return peer.Reply{Answers: len(q.Names) * q.Work.Steps, Each: make([]time.Duration, len(q.Names))}, nil
}

func TestStepsThatAreNotExecutedAreAnError(t *testing.T) {
	s := &session{trial: &trial{amounts: amounts{Passes: 3}, contender: contender{agents: true}}, engine: lazyEngine{},
		log: starts(filepath.Join(t.TempDir(), "log"))}
	_, err := s.five(t.Context(), "x", 2, 1)
	require.ErrorContains(t, err, "0 calls were started; 10 were expected")
	_, err = s.loop(t.Context())
	require.ErrorContains(t, err, "0 calls were started; 3 were expected")
	s.agents = false
	_, err = s.five(t.Context(), "x", 2, 1)
	require.ErrorContains(t, err, "0 steps were executed; 10 were expected")
}

func TestTableShowsValuesAndReasons(t *testing.T) {
	tab := &table{reps: 3, contenders: []contender{{name: passbookName}, {name: "A"},
		{name: "B", missing: errors.New("not installed")}}, readings: map[string]map[figure][]reading{}}
	for _, n := range []float64{0.03, 0.01, 0.02} {
		tab.add(passbookName, map[figure]reading{figOne: {n, nil}, figFork: {2, nil}, figRepeats: {3, nil}})
		tab.add("A", map[figure]reading{figOne: {n / 2, nil}, figFork: {0, peer.ErrNotOffered}, figRepeats: {4, nil},
			figKill: {n, nil}})
	}
	tab.add("A", map[figure]reading{figKill: {0, errors.New("lost\nconnection")}})
	tab.add("A", map[figure]reading{figBytes + " store": {200, nil}, figBytes + " database": {100, nil}})
	var out strings.Builder
	tab.write(&out)
	for _, line := range []string{
		"| | Passbook | A | B |",
		"| five empty steps, one workflow | 20.0 ms | 10.0 ms (0.50) | none (1) |",
		"until its first step | 2 s | not offered | none (1) |",
		"| calls started for three passes | 3 | 4 | none (1) |",
		"the next call begins | none (2) | none (4) | none (1) |",
		"Stored bytes per step: A: database 100, store 200.\n",
		"1. B: not installed\n2. Passbook: not measured\n3. A: not measured\n4. A: lost connection\n",
	} {
		require.Contains(t, out.String(), line)
	}
}

// The plain SDK is a peer at the version that Passbook uses.
func TestPeersUseTheSameSDK(t *testing.T) {
	version := func(dir string) string {
		out, err := exec.CommandContext(t.Context(), "go", "-C", dir, "list", "-m", "-f", "{{.Version}}",
			"go.temporal.io/sdk").Output()
		require.NoError(t, err)
		return string(out)
	}
	require.Equal(t, version("../.."), version("../../tools/peers"))
}

func TestServerSettingsAreDividedByTheFirst(t *testing.T) {
	all := &table{readings: map[string]map[figure][]reading{}}
	for i, v := range variants {
		n := float64(i + 1)
		all.contenders = append(all.contenders, contender{name: v.name})
		for _, value := range []float64{n, 9 * n, 0.05 * n} {
			all.add(v.name, map[figure]reading{figOne: {value: value}, figMany: {value: 20 / n},
				figBytes: {value: 1000 * n}})
		}
	}
	var out bytes.Buffer
	require.NoError(t, all.writeVariants(&out))
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, "| as Passbook starts it | 1 s (1) | 20.0 (1) | 1000 (1) |", lines[2])
	require.Equal(t, "| "+variants[3].name+" | 4 s (4) | 5 (0.25) | 4000 (4) |", lines[5])
	all.add(variants[3].name, map[figure]reading{figOne: {err: errors.New("it broke")}})
	require.ErrorContains(t, all.writeVariants(&out), variants[3].name+": it broke")
}

func TestMemoryOfAFamily(t *testing.T) {
	require.Equal(t, []int{7, 8, 9}, family([]int{7}, map[int]int{1: 0, 5: 1, 7: 1, 8: 7, 9: 8, 10: 5}))
	kb, err := pss("Rss:  900 kB\nPss:                1234 kB\nPss_Dirty: 5 kB\n")
	require.NoError(t, err)
	require.Equal(t, int64(1234), kb)
}

func TestOnlySelectsColumns(t *testing.T) {
	s, err := parse([]string{"-peers", "-only", "Passbook;DBOS, SQLite"})
	require.NoError(t, err)
	all := []contender{{name: "Passbook"}, {name: "bash loop"}, {name: "DBOS, SQLite"}}
	some, err := s.selected(all)
	require.NoError(t, err)
	require.Equal(t, []contender{all[0], all[2]}, some)
	_, err = s.selected(all[1:])
	require.ErrorContains(t, err, `-only names ["Passbook"]`)
}
