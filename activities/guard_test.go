package activities

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
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

func TestFilesThatNewRulesHideAreFound(t *testing.T) {
	many := "mkdir dist; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do echo >dist/f$i; done; "
	for name, row := range map[string]struct {
		command string
		hidden  []string
		count   int
	}{
		"new and changed":   {"echo '*.txt' >>.gitignore; echo b2 >b.txt; echo c >c.txt", []string{"a.txt", "b.txt", "c.txt", "gone.txt"}, 4},
		"rules of a folder": {"mkdir d; echo x >d/x; echo x >d/.gitignore", []string{"d/x"}, 1},
		"ignored before":    {"echo x.log >>.gitignore; echo x >x.log", nil, 0},
		"of no file":        {"echo '*.bin' >>.gitignore; echo b2 >b.txt", nil, 0},
		"many": {many + "echo dist/ >>.gitignore", []string{"dist/f1", "dist/f10", "dist/f11", "dist/f12", "dist/f13", "dist/f2",
			"dist/f3", "dist/f4", "dist/f5", "dist/f6", "dist/f7", "dist/f8"}, 13},
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, "sh "+row.command+thenAnswer)
			res := h.accepted()
			if row.hidden == nil {
				require.Nil(t, res.Found)
				return
			}
			require.Equal(t, row.hidden, res.Found.Hidden)
			require.Equal(t, row.count, res.Found.HiddenCount)
			texts := h.texts(res.Found)
			for _, file := range row.hidden {
				require.Contains(t, texts, "hidden "+file+": ignore rules that the run changed hide it, and it is still part of the work")
				require.Contains(t, h.files(res.Changes.Tree), file)
			}
			if row.count > len(row.hidden) {
				require.Equal(t, "hidden : 1 more", texts[len(texts)-1])
			}
			require.Equal(t, res.Found.Warnings(), res.Validation.Warnings)
		})
	}
}

// TestHiddenFilesStayTracked: the next pass changes one, and a new file of the same rule is ignored. The finding stays.
func TestHiddenFilesStayTracked(t *testing.T) {
	h := onTree(t, "sh if grep -q hide .gitignore; then echo 2 >hide1; echo 2 >hide2; else echo 'hide*' >>.gitignore; "+
		"echo 1 >hide1; fi"+thenAnswer)
	h.in.RunID = "run-1"
	_, known := h.settled()
	h.tree.Tree, h.tree.Commit = known.Tree, known.Commit
	h.in.Tree, h.in.Call = &h.tree, "run-1/g0.002.1.-.1"
	res := h.accepted()
	h.tree.Tree = res.Changes.Tree
	h.carryTo(h.tree)
	files := h.files(res.Changes.Tree)
	require.Equal(t, "2\n", files["hide1"])
	require.NotContains(t, files, "hide2")
	require.Equal(t, []string{"hide1"}, res.Found.Hidden)
	require.FileExists(t, filepath.Join(h.workspace(), "hide2"))
}

func TestRefusedNamesAreFound(t *testing.T) {
	h := onTree(t, `sh echo x >A.txt; echo x >'git~1'; mkdir '.git '; echo x >'.git /config'; echo x >"$(printf 'a\tb')"`+
		"; echo b2 >b.txt"+thenAnswer)
	h.in.RunID = "run-1"
	res, _ := h.settled()
	require.Equal(t, []string{".git /", "A.txt", `a\tb`, "git~1"}, res.Found.Refused)
	require.Contains(t, h.texts(res.Found), "name A.txt: left out of the work: git or another system refuses its name, or it "+
		"differs from another only in case")
	require.Contains(t, res.Validation.Warnings, "left out of the tree: A.txt (name)")
	require.Equal(t, []string{".gitignore", "a.txt", "b.txt", "gone.txt"}, h.paths(res.Changes.Tree))
	require.FileExists(t, filepath.Join(h.workspace(), "A.txt"))
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
		`{\"files\": [\"src/\", \"../x\"]}\n`+"```"+`"}'`, "gives: changes}", "gives: changes, schema: plan}")
	res := h.accepted()
	require.Equal(t, []string{"src/"}, res.Scope.Paths)
	require.JSONEq(t, `["src/"]`, h.text(res.Scope.Digest))
	require.Contains(t, res.Validation.Warnings[0], `"../x"`)
}
