package activities

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/run"
)

// guardedTree is a harness whose workspace protects a.txt and tests/.
func guardedTree(t *testing.T, command string, edits ...string) *trees {
	t.Helper()
	return onTree(t, "sh "+command+thenAnswer, append([]string{"ignore: ['*.tmp']",
		"ignore: ['*.tmp'], protect: [a.txt, tests/]"}, edits...)...)
}

// texts returns the findings about the changes of a pass.
func (h *trees) texts(f *run.Found) []string {
	h.t.Helper()
	if f == nil {
		return nil
	}
	var r pass.Review
	require.NoError(h.t, json.Unmarshal([]byte(h.text(f.Digest)), &r))
	require.Len(h.t, r.Findings, f.Findings.Findings)
	var texts []string
	for _, one := range r.Findings {
		texts = append(texts, one.Severity+" "+one.File+": "+one.Text)
	}
	return texts
}

func TestProtectedFilesAreRestored(t *testing.T) {
	begin := map[string]string{".gitignore": "*.log\n", "a.txt": "a\n", "b.txt": "b\n", "gone.txt": "g\n"}
	for name, row := range map[string]struct {
		command string
		kind    string // of the change of a protected file; empty: none
		other   map[string]string
	}{
		"nothing protected is changed": {"echo b2 >b.txt", "", map[string]string{"b.txt": "b2\n"}},
		"modified beside work":         {"echo exit 0 >a.txt; echo b2 >b.txt", "changed", map[string]string{"b.txt": "b2\n"}},
		"renamed":                      {"mv a.txt c.txt", "renamed", map[string]string{"c.txt": "a\n"}},
		"executable":                   {"chmod 755 a.txt", "mode", nil},
		"a folder":                     {"rm a.txt; mkdir a.txt; echo x >a.txt/x", "replaced", nil},
		"ignored by git": {"echo a.txt >>.gitignore; rm a.txt", "removed",
			map[string]string{".gitignore": "*.log\na.txt\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := guardedTree(t, row.command)
			res := h.accepted()
			want := maps.Clone(begin)
			maps.Copy(want, row.other)
			got := h.tree.Tree
			if res.Changes != nil {
				got = res.Changes.Tree
			}
			require.Equal(t, want, h.files(got))
			if row.other == nil {
				require.Nil(t, res.Changes, "the tree is as it was")
			}
			if row.kind == "" {
				require.Nil(t, res.Tampered)
				require.Nil(t, res.Found)
				return
			}
			require.Equal(t, "worker", res.Tampered.Role)
			require.Equal(t, row.kind, res.Tampered.First[0].Kind)
			require.Contains(t, res.Validation.Warnings, res.Tampered.Warning())
			require.Contains(t, h.texts(res.Found), "tampered a.txt: a protected file that worker changed ("+row.kind+
				"); it was restored")

			again := h.resultOf(h.worker())
			require.True(t, again.Reused)
			require.Equal(t, res.Tampered, again.Tampered, "the same answer, the same result")
			require.Equal(t, res.Changes, again.Changes)
		})
	}
}

func TestRoleMayChangeProtectedFiles(t *testing.T) {
	h := guardedTree(t, "echo a2 >a.txt", "gives: changes}", "gives: changes, protect: false}")
	res := h.result()
	require.Nil(t, res.Tampered)
	require.Equal(t, "a2\n", h.files(res.Changes.Tree)["a.txt"])
}

// What a start reads is protected too: a changed definition would be executed by the next start.
func TestDefinitionIsProtected(t *testing.T) {
	h := onTree(t, "sh echo 'agent: {sandbox: none}' >a.txt; echo b2 >b.txt"+thenAnswer)
	h.tree.Workspace.Definition = []string{"a.txt"}
	h.in.Tree = &h.tree
	res := h.result()
	require.Equal(t, "a.txt (changed)", res.Tampered.Text())
	require.Equal(t, map[string]string{".gitignore": "*.log\n", "a.txt": "a\n", "b.txt": "b2\n", "gone.txt": "g\n"},
		h.files(res.Changes.Tree))
}

// TestSubmodulesAreRestored, also for roles that may change protected files. What else the pass changed is committed beside
// the submodule that the base records.
func TestSubmodulesAreRestored(t *testing.T) {
	for name, row := range map[string]struct{ command, kind, file string }{
		"changed":           {"echo x >lib/x", "changed", "lib/x"},
		"added":             {"echo y >lib/y", "added", "lib/y"},
		"removed":           {"rm -r lib", "removed", "lib/x"},
		"a repository":      {"git init -q lib; echo x >lib/x", "changed", "lib/x"},
		"a file":            {"rm -r lib; echo >lib", "replaced", "lib"},
		"a link":            {"mv lib moved; ln -s moved lib", "renamed", "lib/x"},
		"not initialised":   {"rmdir none; echo >none", "replaced", "none"},
		"only a part of it": {"echo >library", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := withSubmodules(t, "sh "+row.command+"; echo b2 >b.txt"+thenAnswer, "gives: changes}",
				"gives: changes, protect: false}")
			res, known := h.settled()
			files := h.files(res.Changes.Tree)
			require.Equal(t, "1\n", files["lib/x"])
			require.Equal(t, "b2\n", files["b.txt"])
			require.NotContains(t, files, "lib/y")
			require.Equal(t, h.git("ls-tree", h.base, "lib", "none"), h.git("ls-tree", known.Commit, "lib", "none"))
			require.Equal(t, "1\n", read(t, filepath.Join(h.workspace(), "lib/x")))
			require.Empty(t, gitIn(t, h.workspace(), "status", "--porcelain"))
			if row.kind == "" {
				require.Nil(t, res.Tampered)
				return
			}
			require.Contains(t, h.texts(res.Found),
				"tampered "+row.file+": a file of a submodule that worker changed ("+row.kind+"); it was restored")
			require.Contains(t, res.Validation.Warnings, res.Tampered.Warning())
		})
	}
}

// TestEditsInSubmodulesAreKeptBeside the run: they are not committed, and the next call does not get them.
func TestEditsInSubmodulesAreKeptBeside(t *testing.T) {
	h := withSubmodules(t, "answer")
	h.carryTo(h.tree)
	h.edit(map[string]string{"lib/x": "mine\n", "b.txt": "b2\n"})
	ev := h.inspect(h.tree).Workspace
	require.Equal(t, 1, ev.Changed)
	require.Equal(t, "1\n", h.files(ev.Tree)["lib/x"])
	require.Equal(t, "b.txt", h.git("diff", "--name-only", h.base, ev.Commit))
	known := h.tree
	known.Tree, known.Commit = ev.Tree, ev.Commit
	require.Contains(t, h.carryTo(known).Recovered[0].Message, "lib/x (now _orchestrator/edits/lib/x)")
	require.Equal(t, "mine\n", read(t, filepath.Join(h.dir, "_orchestrator/edits/lib/x")))
	require.Equal(t, "1\n", read(t, filepath.Join(h.workspace(), "lib/x")))
	h.edit(map[string]string{"lib/x": "again\n"})
	require.Equal(t, contract.InspectResult{}, h.inspect(known))
}

func TestGlobsMatchNoFilesOfSubmodules(t *testing.T) {
	h := withSubmodules(t, "answer", "steps: [{role: worker},", "each: {in: '**/*'}\n    steps: [{role: worker},")
	res := must(do(t, h.acts.ExpandLanes, contract.ExpandInput{Store: h.s.URL(), PlanUse: h.tree.PlanUse, Tree: &h.tree.Tree,
		Submodules: h.tree.Workspace.Submodules}))(t)
	var names []string
	for _, item := range res.Items {
		names = append(names, item.Name)
	}
	require.Equal(t, []string{".gitignore", "a.txt", "b.txt", "gone.txt"}, names)
}

// withSubmodules is a harness whose base has the submodules lib, with the file x, and none, which is not initialised.
func withSubmodules(t *testing.T, play string, edits ...string) *trees {
	t.Helper()
	h := onTree(t, play, edits...)
	h.git("init", "-q", "lib")
	writeFiles(t, filepath.Join(h.source, "lib"), map[string]string{"x": "1\n"})
	gitIn(t, filepath.Join(h.source, "lib"), "add", "x")
	gitIn(t, filepath.Join(h.source, "lib"), "commit", "-q", "-m", "Lib")
	h.git("add", "lib")
	h.git("update-index", "--add", "--cacheinfo", "160000,"+h.base+",none")
	require.NoError(t, os.Mkdir(filepath.Join(h.source, "none"), 0o755))
	h.git("commit", "-q", "-m", "Submodules")
	h.startFrom(h.tree.PlanUse, must(h.acts.plan(t.Context(), h.s, h.tree.Plan))(t))
	h.tree.Workspace.Submodules = []string{"lib", "none"}
	return h
}

func TestProtectedFilesAreAsTheOperatorLeftThem(t *testing.T) {
	h := guardedTree(t, "echo exit 0 >a.txt")
	known := h.carried(map[string]string{".gitignore": "*.log\n", "a.txt": "a\n"})
	h.edit(map[string]string{"a.txt": "edited\n"})
	ev := h.inspect(known).Workspace
	require.NotNil(t, ev)
	h.tree.Tree, h.tree.Commit = ev.Tree, ev.Commit
	h.in.Tree = &h.tree
	res := h.result()
	require.Equal(t, "a.txt (changed)", res.Tampered.Text())
	require.Nil(t, res.Changes)
	require.Equal(t, "edited\n", h.files(h.tree.Tree)["a.txt"])
}

func TestFilesOutsideTheScopeAreFound(t *testing.T) {
	for name, row := range map[string]struct {
		scope   string
		command string
		want    []string
	}{
		"inside": {`["b.txt", "src/"]`, "echo b2 >b.txt; mkdir src; echo x >src/x", nil},
		"outside": {`["src/"]`, "echo b2 >b.txt; echo c >c.txt; mkdir src; echo x >src/x",
			[]string{"b.txt", "c.txt"}},
		"beside a protected": {`["a.txt"]`, "echo x >a.txt; echo b2 >b.txt", []string{"a.txt", "b.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := guardedTree(t, row.command)
			paths := must(h.s.Put(t.Context(), []byte(row.scope+"\n")))(t)
			h.in.Scope = &run.Scope{Role: "planner", Digest: string(paths), Tree: h.tree.Tree.Digest}
			res := h.result()
			if row.want == nil {
				require.Nil(t, res.Found)
				return
			}
			files := h.texts(res.Found)
			for _, file := range row.want {
				severity := "scope " + file + ": changed outside the scope that planner declared"
				if file == "a.txt" {
					severity = "tampered a.txt: a protected file that worker changed (changed); it was restored"
				}
				require.Contains(t, files, severity)
			}
			require.Len(t, files, len(row.want))
			require.Equal(t, run.CategoryOK, res.Outcome, "a finding is not a failure")
		})
	}
}

func TestReplyDeclaresTheScope(t *testing.T) {
	h := onTree(t, `sh printf '%s' '{"type":"result","is_error":false,"result":"Plan.\n`+"```json\\n"+
		`{\"scope\": [\"src/\", \"../x\"]}\n`+"```"+`"}'`, "gives: changes}", "gives: changes, scope: reply}")
	res := h.accepted()
	require.Equal(t, []string{"src/"}, res.Scope.Paths)
	require.JSONEq(t, `["src/"]`, h.text(res.Scope.Digest))
	require.Contains(t, res.Validation.Warnings[0], `"../x"`)
}
