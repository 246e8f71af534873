package redact

import (
	"encoding/json"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ofFiles are rules of files whose texts have quotes or lines: JSON strings are decoded for them.
var ofFiles = []string{"freemius-secret-key", "hashicorp-tf-password", "nuget-config-password"}

// TestRulesOfGitleaks writes a text that each rule matches, in prose, in a JSON string and in one of that.
func TestRulesOfGitleaks(t *testing.T) {
	require.Greater(t, len(gitleaks()), 200)
	r := redactor(t, Options{})
	random := rand.New(rand.NewSource(1))
	for _, f := range gitleaks() {
		tree, err := syntax.Parse(f.re().String(), syntax.Perl)
		require.NoError(t, err)
		text, secret := "", ""
		for range 100 { // until it is as random as a secret
			text = sample(tree, random)
			word := f.words[random.Intn(len(f.words))]
			after := f.back + len(word)
			if f.setting {
				names, equals := []string{"", "_KEY", `.key"`, " token"}, []string{"=", ": ", ` => "`, ":='", ">"}
				text = word + names[random.Intn(len(names))] + equals[random.Intn(len(equals))] + text
			}
			if start, end, ok := f.match(text, 0, after); ok {
				secret = text[start:end]
				break
			}
		}
		require.NotEmpty(t, secret, "%s: %s", f.name, text)
		quoted, err := json.Marshal("a\n" + text + "\nb")
		require.NoError(t, err)
		inner, err := json.Marshal(string(quoted))
		require.NoError(t, err)
		for _, whole := range []string{text, "is: " + text + "\n", string(quoted), string(inner)} {
			if whole != string(quoted) && whole != string(inner) || !slices.Contains(ofFiles, f.name) {
				require.NotContains(t, r.Text(whole), secret, f.name)
			}
		}
	}
}

// sample returns a text that an expression matches.
func sample(re *syntax.Regexp, random *rand.Rand) string {
	many := func(least, limit int) (out string) {
		more := 1
		if limit == least {
			more = 0
		}
		for range least + random.Intn(more+1) {
			out += sample(re.Sub[0], random)
		}
		return out
	}
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		var all []rune
		for i := 0; i < len(re.Rune); i += 2 {
			for c := re.Rune[i]; c <= min(re.Rune[i+1], '~'); c++ {
				if c >= ' ' && c != '\\' {
					all = append(all, c)
				}
			}
		}
		return string(all[random.Intn(len(all))])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return string(rune('a' + random.Intn(26)))
	case syntax.OpCapture:
		return sample(re.Sub[0], random)
	case syntax.OpStar:
		return many(0, -1)
	case syntax.OpPlus:
		return many(1, -1)
	case syntax.OpQuest:
		return many(0, 1)
	case syntax.OpRepeat:
		return many(re.Min, re.Max)
	case syntax.OpAlternate:
		return sample(re.Sub[random.Intn(len(re.Sub))], random)
	case syntax.OpConcat:
		out := ""
		for _, sub := range re.Sub {
			out += sample(sub, random)
		}
		return out
	}
	return "" // an anchor
}

func TestWordsInsideOfSecrets(t *testing.T) {
	r := redactor(t, Options{})
	for kind, secret := range map[string]string{
		"azure-ad-client-secret": "Ab~4Q~" + "7pWk2ZxL9vTqRmJc5NsHgYb8UfEdKa1oPi",
		"hashicorp-tf-api-token": "k4Jx9QmZt2LbVn" + ".atlasv1." + strings.Repeat("aZ3kQ9xLm2", 6) + "b7c8d",
		"maxmind-license-key":    "aB3dE6_" + "q7Wx2Zk9LmV4tRp8JcN5sHgYb1UfE_mmk",
	} {
		require.Equal(t, []string{kind}, r.Kinds("secret: "+secret+"\n"))
		require.Regexp(t, `^secret: \[redacted:[a-z0-9-]+:[0-9a-f]{4}\]\n$`, r.Text("secret: "+secret+"\n"))
		require.Regexp(t, `^\\n\[redacted`, r.Text(`\n`+secret+`\n`))
		require.Empty(t, r.Kinds(secret[3:]), "without its beginning it is none")
	}
}

// TestOwnSourceIsUnchanged reads the texts of this repository: none of the rules of gitleaks matches by chance.
func TestOwnSourceIsUnchanged(t *testing.T) {
	r := redactor(t, Options{})
	files := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() != ".." && (strings.HasPrefix(d.Name(), ".") && path != "../.." ||
			slices.Contains([]string{"bin", "dist", "runs", "node_modules"}, d.Name())) {
			return fs.SkipDir
		}
		if !slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".json", ".sum", ".txtar", ".html", ".sh"}, filepath.Ext(path)) ||
			slices.Contains([]string{"gitleaks.go", "redact_test.go"}, d.Name()) {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, kind := range r.Kinds(string(raw)) {
			require.False(t, slices.ContainsFunc(gitleaks(), func(f form) bool { return f.name == kind }), "%s: %s", path, kind)
		}
		return nil
	}))
	require.Greater(t, files, 1000)
}
