package activities

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

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
