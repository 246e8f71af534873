package scripted

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func workerPrompt(round string) string {
	return "# DETERMINISTIC ORCHESTRATOR — [turns] Cycle " + round + " — Worker\n\nRole: worker\nRound: " + round +
		" of 50\n\n---\n\nContinue.\n"
}

const smallPlan = "# Plan\n\n## Turn 1: Begin\n\ncreate `a/one.txt`\n\n```text\none\n```\n\ncreate " +
	"`run`\n\n```sh\n#!/bin/sh\necho STATUS: done\n```\n\n" +
	"## Turn 2: Move\n\nrename `a/one.txt` to `b/two.txt`\n\nchange `run`\n\n```sh\n#!/bin/sh\nexit " +
	"1\n```\n\nSTATUS: done\n\n" +
	"## Turn 3: End\n\ndelete `b/two.txt`\n\ndelete `PLAN.md`\n"

func TestWorkerFollowsThePlan(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile(planFile, []byte(smallPlan), 0o644))
	require.Equal(t, "# Begin\n\n- create a/one.txt\n- create run\n\nSTATUS: more\n",
		answerOf(t, workerPrompt("1"), nil).Result)
	require.Equal(t, map[string]string{
		"PLAN.md": smallPlan, "a/one.txt": "one\n", "run": "#!/bin/sh\necho STATUS: done\n",
	}, filesHere(t))
	info, err := os.Stat("run")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode().Perm())

	require.Equal(t, "# Move\n\n- rename a/one.txt to b/two.txt\n- change run\n\nSTATUS: done\n",
		answerOf(t, workerPrompt("2"), nil).Result, "the plan may say so too early")
	require.Equal(t, map[string]string{"PLAN.md": smallPlan, "b/two.txt": "one\n", "run": "#!/bin/sh\nexit 1\n"},
		filesHere(t))

	require.Equal(t, "# End\n\n- delete b/two.txt\n- delete PLAN.md\n\nSTATUS: done\n",
		answerOf(t, workerPrompt("3"), nil).Result)
	require.Equal(t, map[string]string{"run": "#!/bin/sh\nexit 1\n"}, filesHere(t))
	require.Equal(t, "There is no plan, so nothing is left to do.\n\nSTATUS: done\n",
		answerOf(t, workerPrompt("4"), nil).Result)
}

// TestWorkerFindsUncleanFolder: doing a turn on what an earlier attempt has left does not pass unnoticed.
func TestWorkerFindsUncleanFolder(t *testing.T) {
	for message, plan := range map[string]string{
		"create a: it is there already":      "create `a`\n\n```text\nx\n```\n",
		"change gone: lstat gone":            "change `gone`\n\n```text\nx\n```\n",
		"delete gone: lstat gone":            "delete `gone`\n",
		"rename gone to b: lstat gone":       "rename `gone` to `b`\n",
		"rename a to c: it is there already": "rename `a` to `c`\n",
		"delete ../a: it leads out":          "delete `../a`\n",
		"rename a to /tmp/a: it leads out":   "rename `a` to `/tmp/a`\n",
	} {
		t.Run(message, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, text := range map[string]string{"a": "a\n", "c": "c\n", planFile: "## Turn 1: X\n\n" + plan} {
				require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
			}
			code, stdout, stderr := invoke(workerPrompt("1"), nil)
			require.Equal(t, 1, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, message)
			require.Equal(t, "a\n", filesHere(t)["a"])
		})
	}
}

// TestPlanOfTheExample is done turn by turn, and its tests fail just where the story wants it.
func TestPlanOfTheExample(t *testing.T) {
	project := t.TempDir()
	require.NoError(t, os.CopyFS(project, os.DirFS("../../../examples/turns/project")))
	t.Chdir(project)
	judge, err := os.ReadFile("test.sh")
	require.NoError(t, err)
	var received []string
	for _, n := range strings.Fields("1 2 3 4 5 6 7 8") {
		reply := strings.Split(strings.TrimSpace(answerOf(t, workerPrompt(n), nil).Result), "\n")
		if n == "7" {
			require.NoError(t, exec.Command("sh", "test.sh").Run(), "it has written a test that passes")
		}
		require.NoError(t, os.WriteFile("test.sh", judge, 0o644)) // as a run does, because it is protected
		tests := "ok"
		if exec.Command("sh", "test.sh").Run() != nil {
			tests = "failed"
		}
		received = append(received, n+" "+reply[len(reply)-1]+" "+tests)
	}
	require.Equal(t, []string{
		"1 STATUS: more failed", "2 STATUS: more failed", "3 STATUS: more failed", "4 STATUS: more failed",
		"5 STATUS: more failed", "6 STATUS: more failed", "7 STATUS: done failed", "8 STATUS: done ok",
	}, received)
	require.Equal(t, []string{"README.md", "bin/ledger", "data/expenses.csv", "lib/report.awk", "test.sh"},
		slices.Sorted(maps.Keys(filesHere(t))))
}

// filesHere returns all files below the working directory.
func filesHere(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		out[path] = string(raw)
		return err
	}))
	return out
}
