package tree

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
)

// ignoring is a folder in which git ignores files.
type ignoring struct {
	rules   map[string]string // .gitignore by its folder; all are tracked
	tracked []string          // other tracked files
	exclude string            // info/exclude
	global  string            // core.excludesFile
}

// ignorableFiles are in a folder whose rules are compared.
var ignorableFiles = []string{
	"a", "b", "a.log", "b.log", "a b", "a ", "a\r", "#a", "!a", "é", "a\\", "[a", "{a,b}", "*", "?", "a.tar.gz", ".hidden", "A",
	"d/a", "d/b", "d/a.log", "d/s/a", "d/s/b.log", "d/s/t/a", "d/build/a", "build/a", "build/d/a", "x/build/a",
	"x/y/z/a", "x/y/z/b", "x/y/a", "logs/a/x", "node_modules/p/a", "d/node_modules/p/b", "-/a", "d/é",
}

// agree requires that a save takes what git would add, or has.
func (g ignoring) agree(t *testing.T, dir string, s *store.Store) {
	t.Helper()
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git/index")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git/info/exclude"), []byte(g.exclude), 0o600))
	global := filepath.Join(dir, ".git/global")
	require.NoError(t, os.WriteFile(global, []byte(g.global), 0o600))
	tracked := slices.Clone(g.tracked)
	for folder, text := range g.rules {
		name := filepath.Join(folder, ignoreFile)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		tracked = append(tracked, name)
	}
	defer func() {
		for folder := range g.rules {
			require.NoError(t, os.Remove(filepath.Join(dir, folder, ignoreFile)))
		}
	}()
	if len(tracked) > 0 {
		git(t, dir, append([]string{"--literal-pathspecs", "add", "-f", "--"}, tracked...)...)
	}
	listed := git(t, dir, "-c", "core.excludesFile="+global, "ls-files", "-z", "--others", "--exclude-standard")
	want := append(strings.Split(strings.TrimSuffix(listed, "\x00"), "\x00"), tracked...)
	if listed == "" {
		want = tracked
	}
	known := Tree{}
	for _, e := range must(Save(t.Context(), s, dir, Rules{IncludeSecrets: true}, nil))(t).Tree.Entries {
		if e.Mode == ModeFolder || slices.Contains(tracked, e.Path) {
			known.Entries = append(known.Entries, e)
		}
	}
	rules := Rules{IncludeSecrets: true, Tracked: tracked,
		Git: must(ReadIgnores(t.Context(), s, known, g.global, g.exclude))(t)}
	got := []string{}
	for _, e := range must(Save(t.Context(), s, dir, rules, nil))(t).Tree.Entries {
		if e.IsFile() {
			got = append(got, e.Path)
		}
	}
	require.ElementsMatch(t, want, got, "%+v", g)
}

func ignorableFolder(t *testing.T) (string, *store.Store) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range ignorableFiles {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(f)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
	}
	git(t, dir, "init", "-q")
	return dir, must(store.Open(t.Context(), "file://"+t.TempDir()))(t)
}

// TestIgnoresAreThoseOfGit compares rules with git itself.
func TestIgnoresAreThoseOfGit(t *testing.T) {
	at := func(text string) map[string]string { return map[string]string{".": text} }
	dir, s := ignorableFolder(t)
	for name, g := range map[string]ignoring{
		"none":                          {},
		"no line end":                   {rules: at("*.log")},
		"CRLF":                          {rules: at("*.log\r\n!b.log\r\nbuild/\r\n")},
		"CR without a line end":         {rules: at("*.log\r")},
		"CR within a line":              {rules: at("a\r\r\n")},
		"BOM":                           {rules: at("\ufeff*.log\n")},
		"BOM in the second line":        {rules: at("a\n\ufeff*.log\n")},
		"BOM and a comment":             {rules: at("\ufeff# *.log\n*.log\n")},
		"trailing spaces":               {rules: at("a   \nb.log \n")},
		"trailing tab":                  {rules: at("a\t\n")},
		"escaped space":                 {rules: at("a\\ \n")},
		"escaped space, then spaces":    {rules: at("a\\   \n")},
		"escaped backslash, then space": {rules: at("a\\\\ \n")},
		"space and CRLF":                {rules: at("a \r\n")},
		"leading space":                 {rules: at(" a\n")},
		"inner space":                   {rules: at("a b\n")},
		"comments":                      {rules: at("#a\n \n\n\\#a\n")},
		"escaped negation":              {rules: at("\\!a\n")},
		"only a negation":               {rules: at("!\n!a\n")},
		"two negations":                 {rules: at("*\n!!a\n")},
		"broken patterns":               {rules: at("[\n[a\na\\\n*.log\n")},
		"broken escape":                 {rules: at("a\\\n")},
		"brackets":                      {rules: at("[]a]\n[!b]\n")},
		"a bracket first":               {rules: at("[][!]a\n")},
		"a range with escapes":          {rules: at("[\\a-\\b]\n")},
		"braces":                        {rules: at("{a,b}\n")},
		"braces in brackets":            {rules: at("[{}]a,b[{}]\n")},
		"classes":                       {rules: at("[[:punct:]]a\n[[:alpha:]].log\n")},
		"an unknown class":              {rules: at("[[:foo:]]\na.log\n")},
		"one byte":                      {rules: at("?\n")},
		"two bytes":                     {rules: at("??\n")},
		"a class and two bytes":         {rules: at("[!a]\n")},
		"quoted wildcards":              {rules: at("\\*\n\\?\n")},
		"everything but":                {rules: at("*\n!*/\n!*.log\n!.gitignore\n")},
		"a folder, not its content":     {rules: at("build\n!build/a\n")},
		"content, not its folder":       {rules: at("build/*\n!build/a\n")},
		"anchored":                      {rules: at("/build\n/d/s\n")},
		"slashes at both ends":          {rules: at("/build/\n/a/\n")},
		"two slashes":                   {rules: at("//build\nd//s\nbuild//\n")},
		"dot":                           {rules: at("./a\n.\n..\n")},
		"stars":                         {rules: at("**/s/**\nx/**/a\n")},
		"three stars":                   {rules: at("x/***/a\nd***\n")},
		"a folder of stars":             {rules: at("**/\n")},
		"stars in a name":               {rules: at("x/y**/a\n")},
		"a case":                        {rules: at("A\n")},
		"of a folder":                   {rules: map[string]string{"d": "a\n/b\n/s/b.log\n"}},
		"nearer counts more":            {rules: map[string]string{".": "*.log\n", "d": "!*.log\n", "d/s": "*.log\n"}},
		"a pattern of a folder above":   {rules: map[string]string{".": "/d/s/a\n", "d": "!/s/a\n"}},
		"nearer cannot open a folder":   {rules: map[string]string{".": "d/\n", "d": "!*\n"}},
		"nearer opens a folder":         {rules: map[string]string{".": "s/\n", "d": "!s/\n"}},
		"tracked in an ignored folder":  {rules: at("build/\n"), tracked: []string{"build/d/a"}},
		"tracked, and a rule below": {rules: map[string]string{".": "d/\n", "d/s": "!*\n"},
			tracked: []string{"d/s/t/a"}},
		"tracked beside ignored":      {rules: at("*.log\n"), tracked: []string{"a.log", "d/a.log"}},
		"a negation below tracked":    {rules: at("d/\n!d/a\n!d/s/\n"), tracked: []string{"d/s/t/a"}},
		"exclude":                     {exclude: "*.log\nbuild/\n"},
		"exclude and a nearer rule":   {rules: at("!a.log\n"), exclude: "*.log\n"},
		"exclude counts more":         {exclude: "!a.log\n", global: "*.log\n"},
		"global":                      {global: "*.log\n"},
		"global cannot overrule":      {rules: at("a.log\n"), global: "!*.log\n"},
		"global and a nearer rule":    {rules: map[string]string{"d": "!*.log\n"}, global: "*.log\n"},
		"anchored in exclude":         {exclude: "/d/a\n", global: "/d/b\n"},
		"node_modules":                {rules: at("node_modules/\n")},
		"the file of rules":           {rules: at(".gitignore\n*.log\n")},
		"nothing below but the rules": {rules: map[string]string{"d": "*\n!.gitignore\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range g.tracked {
				require.FileExists(t, filepath.Join(dir, f))
			}
			g.agree(t, dir, s)
		})
	}
}

// TestRandomIgnoresAreThoseOfGit puts rules together from parts.
func TestRandomIgnoresAreThoseOfGit(t *testing.T) {
	dir, s := ignorableFolder(t)
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b", "*", "**", "/", "/", "d", "s", "build", "x", ".log", "?", "!", "[ab]", "[!a]", " ", "\\ ", "\\", "é"}
	folders := []string{".", "d", "d/s", "x", "build"}
	text := func() string {
		out := ""
		for range random.IntN(4) {
			if random.IntN(4) == 0 {
				out += "!"
			}
			for range 1 + random.IntN(4) {
				out += parts[random.IntN(len(parts))]
			}
			out += []string{"\n", "\r\n", "/\n"}[random.IntN(3)]
		}
		return out
	}
	for range 150 {
		g := ignoring{exclude: text(), global: text(), rules: map[string]string{}}
		for range random.IntN(4) {
			g.rules[folders[random.IntN(len(folders))]] = text()
		}
		for range random.IntN(3) {
			if f := ignorableFiles[random.IntN(len(ignorableFiles))]; !slices.Contains(g.tracked, f) {
				g.tracked = append(g.tracked, f)
			}
		}
		g.agree(t, dir, s)
	}
}

// FuzzIgnores: no file of rules makes the program panic, or git and the program disagree about one file.
func FuzzIgnores(f *testing.F) {
	for _, text := range []string{"*.log\r\n", "\ufeffa\n!b", "d/**/a\n", "[]-a]\n", "a\\ \n", "[[:alpha:]]\n"} {
		f.Add(text, "d/a.log")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		c := (&Ignores{Files: map[string]string{".": text, "d": text}, Others: []string{text}}).compile()
		if checkPath(path) != nil {
			return
		}
		c.ignores(path, false)
		c.ignores(path, true)
	})
}

// TestRulesAreReadFromTheTree: those of links are none, as in git, and a missing blob is an error.
func TestRulesAreReadFromTheTree(t *testing.T) {
	dir, s := t.TempDir(), must(store.Open(t.Context(), "file://"+t.TempDir()))(t)
	for name, text := range map[string]string{".gitignore": "root\n", "d/.gitignore": "d\n", "e/rules": "e\n"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		write(t, filepath.Join(dir, name), text)
	}
	require.NoError(t, os.Symlink("rules", filepath.Join(dir, "e/.gitignore")))
	saved := must(Save(t.Context(), s, dir, Rules{}, nil))(t)
	g := must(ReadIgnores(t.Context(), s, saved.Tree, "mine\n"))(t)
	require.Equal(t, map[string]string{".": "root\n", "d": "d\n"}, g.Files)
	require.Equal(t, []string{"mine\n"}, g.Others)
	require.Equal(t, []string{".", "d"}, slices.Sorted(maps.Keys(g.compile().files)))
	saved.Tree.Entries[0].Digest = store.DigestOf([]byte("missing"))
	_, err := ReadIgnores(t.Context(), s, saved.Tree)
	require.ErrorIs(t, err, store.ErrMissing)
}
