package activities

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

const answering = `; echo '{"type":"result","is_error":false,"result":"Done."}'`

// guardedTree is a harness whose workspace protects a.txt and tests/.
func guardedTree(t *testing.T, command string, edits ...string) *trees {
	t.Helper()
	return onTree(t, "sh "+command+answering, append([]string{"ignore: ['*.tmp']",
		"ignore: ['*.tmp'], protect: [a.txt, tests/]"}, edits...)...)
}

// texts returns the findings about the changes of a pass.
func (h *trees) texts(f *run.Found) []string {
	h.t.Helper()
	if f == nil {
		return nil
	}
	raw, err := blobs.Get(h.t.Context(), h.s, f.Digest)
	require.NoError(h.t, err)
	var r pass.Review
	require.NoError(h.t, json.Unmarshal(raw, &r))
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
		"modified":                     {"echo exit 0 >a.txt", "changed", nil},
		"modified beside work":         {"echo exit 0 >a.txt; echo b2 >b.txt", "changed", map[string]string{"b.txt": "b2\n"}},
		"deleted":                      {"rm a.txt", "removed", nil},
		"renamed":                      {"mv a.txt c.txt", "renamed", map[string]string{"c.txt": "a\n"}},
		"executable":                   {"chmod 755 a.txt", "mode", nil},
		"a symlink":                    {"ln -sf b.txt a.txt", "replaced", nil},
		"a folder":                     {"rm a.txt; mkdir a.txt; echo x >a.txt/x", "replaced", nil},
		"ignored by git": {"echo a.txt >>.gitignore; rm a.txt", "removed",
			map[string]string{".gitignore": "*.log\na.txt\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := guardedTree(t, row.command)
			res, err := h.pass(context.Background())
			require.NoError(t, err)
			require.Equal(t, run.CategoryOK, res.Outcome, res.Message)
			want := map[string]string{}
			for _, files := range []map[string]string{begin, row.other} {
				for path, text := range files {
					want[path] = text
				}
			}
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
			require.Contains(t, res.Tampered.Text(), "a.txt ("+row.kind+")")
			require.Contains(t, res.Validation.Warnings, res.Tampered.Warning())
			require.Contains(t, h.texts(res.Found), "tampered a.txt: a protected file that worker changed ("+row.kind+
				"); it was restored")

			again, err := h.passOf(context.Background(), h.worker())
			require.NoError(t, err)
			require.True(t, again.Reused)
			require.Equal(t, res.Tampered, again.Tampered, "the same answer, the same result")
			require.Equal(t, res.Changes, again.Changes)
		})
	}
}

func TestFilesAddedBelowProtectedFoldersAreRemoved(t *testing.T) {
	h := guardedTree(t, "mkdir -p tests/deep; echo x >tests/deep/a; echo b2 >b.txt")
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, "tests/deep/a (added)", res.Tampered.Text())
	require.NotContains(t, h.files(res.Changes.Tree), "tests/deep/a")
	require.Equal(t, 1, res.Changes.Changed)
}

func TestRoleMayChangeProtectedFiles(t *testing.T) {
	h := guardedTree(t, "echo a2 >a.txt", "gives: changes}", "gives: changes, protect: false}")
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Nil(t, res.Tampered)
	require.Equal(t, "a2\n", h.files(res.Changes.Tree)["a.txt"])
}

func TestProtectedFilesAreAsTheOperatorLeftThem(t *testing.T) {
	h := guardedTree(t, "echo exit 0 >a.txt")
	known, carried := h.carry(map[string]string{".gitignore": "*.log\n", "a.txt": "a\n"})
	known.Commit = carried.Commit
	require.NoError(t, os.WriteFile(filepath.Join(h.workspace(), "a.txt"), []byte("edited\n"), 0o600))
	ev := h.inspect(known).Workspace
	require.NotNil(t, ev)
	h.tree.Tree, h.tree.Commit = ev.Tree, ev.Commit
	h.in.Tree = &h.tree
	res, err := h.pass(context.Background())
	require.NoError(t, err)
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
		"renamed out":        {`["b.txt"]`, "mv b.txt c.txt", []string{"c.txt"}},
		"deleted":            {`["b.txt"]`, "rm gone.txt", []string{"gone.txt"}},
		"beside a protected": {`["a.txt"]`, "echo x >a.txt; echo b2 >b.txt", []string{"a.txt", "b.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := guardedTree(t, row.command)
			paths, err := h.s.Put(t.Context(), []byte(row.scope+"\n"))
			require.NoError(t, err)
			h.in.Scope = &run.Scope{Role: "planner", Digest: string(paths), Tree: h.tree.Tree.Digest}
			res, err := h.pass(context.Background())
			require.NoError(t, err)
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
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryOK, res.Outcome, res.Message)
	require.Equal(t, []string{"src/"}, res.Scope.Paths)
	raw, err := h.s.Get(t.Context(), store.Digest(res.Scope.Digest))
	require.NoError(t, err)
	require.JSONEq(t, `["src/"]`, string(raw))
	require.Contains(t, res.Validation.Warnings[0], `"../x"`)
}
