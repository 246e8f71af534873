package pipeline

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"go.yaml.in/yaml/v3"
)

const publishedSchema = "definition.schema.json"

// compiled is the published schema; compiling checks it against the schema of schemas.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(publishedSchema)
	require.NoError(t, err)
	return s
}

// asJSON reads a definition as an editor does: plain YAML, aliases and merges followed.
func asJSON(t testing.TB, src []byte) any {
	t.Helper()
	var read any
	require.NoError(t, yaml.Unmarshal(src, &read))
	data, err := json.Marshal(read)
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return v
}

// definitions are those that people begin with, by path.
func definitions(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../examples/*/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 6)
	return paths
}

func TestSchemaAcceptsValidDefinitions(t *testing.T) {
	sources := map[string][]byte{"healthy": []byte(healthy), "rich": []byte(rich), "asking": []byte(asking)}
	for _, name := range []string{"corpus-integration.yaml", "plan-implement-review.yaml", "turn-loop.yaml"} {
		sources[name] = read(t, name)
	}
	for _, path := range definitions(t) {
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		sources[path] = src
	}
	for name, src := range sources {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, compiled(t).Validate(asJSON(t, src)))
		})
	}
}

// An editor takes the schema from a definition's first line.
func TestEveryExampleNamesTheSchema(t *testing.T) {
	line := regexp.MustCompile(`^# yaml-language-server: \$schema=(\S+)\n`)
	published, err := filepath.Abs(publishedSchema)
	require.NoError(t, err)
	for _, path := range definitions(t) {
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		m := line.FindSubmatch(src)
		require.NotNil(t, m, path)
		named, err := filepath.Abs(filepath.Join(filepath.Dir(path), string(m[1])))
		require.NoError(t, err)
		require.Equal(t, published, named, path)
	}
}

// unsaid are the mistakes and the files of testdata/broken that a schema has no words for: what is there twice, names
// that refer to one another, files, and tags.
var unsaid = []string{
	"duplicate label", "duplicate stage", "duplicate step name", "duplicate check", "duplicate marker",
	"duplicate folder", "missing file always read", "a path outside", "a blank prompt", "an unknown placeholder",
	"no such role in a step", "no such role together", "no such step to see", "nothing before to see",
	"a later stage to see", "a later step to see", "no such name in until", "no verdict for until",
	"a gate on an unknown value", "a step called like a stage", "bad regexp",
	"an idle time that the timeout precedes", "a custom tag", "roles that nothing is protected from",
	"a gate that cannot be read", "bad-condition-of-words.yaml", "bad-conditions.yaml",
	"anchor-of-a-step-with-a-mistake.yaml", "bad-placeholders.yaml", "duplicate-names.yaml",
	"duration-first-above-max.yaml", "second-document.yaml",
}

// invalid are the mistakes, and the files of testdata/broken, that are JSON in the form of YAML.
func invalid(t *testing.T) map[string]any {
	t.Helper()
	sources := map[string]string{}
	for _, c := range mistakes {
		sources[c.name] = strings.Replace(healthy, c.old, c.new, 1)
		if c.old == "" {
			sources[c.name] = healthy + c.new
		}
	}
	for _, path := range brokenFiles(t) {
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		sources[filepath.Base(path)] = string(src)
	}
	readable := map[string]any{}
	for name, src := range sources {
		var read any
		if yaml.Unmarshal([]byte(src), &read) != nil {
			continue
		}
		if _, err := json.Marshal(read); err == nil {
			readable[name] = asJSON(t, []byte(src))
		}
	}
	return readable
}

func TestSchemaRefusesInvalidShapes(t *testing.T) {
	s := compiled(t)
	var accepted []string
	for name, definition := range invalid(t) {
		if s.Validate(definition) == nil {
			accepted = append(accepted, name)
		}
	}
	require.ElementsMatch(t, unsaid, accepted)
}

// The guide's tables of keys, by heading, are the schema's.
func TestGuideDocumentsEveryKey(t *testing.T) {
	page, err := os.ReadFile("../docs/pipelines.md")
	require.NoError(t, err)
	for heading, of := range map[string]reflect.Type{"## The keys": reflect.TypeFor[Definition](),
		"### Roles": reflect.TypeFor[Role](), "### Stages": reflect.TypeFor[Stage]()} {
		_, section, ok := strings.Cut(string(page), "\n"+heading+"\n")
		require.True(t, ok, heading)
		section, _, _ = strings.Cut(section, "\n##")
		var received []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1) {
			received = append(received, m[1])
		}
		var known []string
		for _, k := range keysOf(of) {
			if !slices.Contains(k.in, "agent") {
				known = append(known, k.name)
			}
		}
		if heading == "### Stages" { // the next section documents these two
			known = slices.DeleteFunc(known, func(key string) bool { return key == "steps" || key == "passes" })
		}
		require.ElementsMatch(t, known, received, heading)
	}
}

// No editor underlines a valid definition.
func FuzzSchemaAcceptsWhatParseAccepts(f *testing.F) {
	for _, name := range []string{"corpus-integration.yaml", "plan-implement-review.yaml", "turn-loop.yaml"} {
		f.Add(read(f, name))
	}
	f.Add([]byte(healthy))
	f.Add([]byte(rich))
	s := compiled(f)
	folder := folderFor([]byte(healthy + rich))
	f.Fuzz(func(t *testing.T, src []byte) {
		if _, problems := Parse("x.yaml", src, folder); len(problems) > 0 {
			return
		}
		if err := s.Validate(asJSON(t, src)); err != nil {
			t.Fatal(err)
		}
	})
}

// An interrupted call of an example continues: no option of its command switches sessions off.
func TestAgentsOfExamplesContinueSessions(t *testing.T) {
	for _, path := range definitions(t) {
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, a := range Expand(parsed(t, src)).Agents {
			if kind, _ := adapter.Find(a.Reply); kind.Resume != nil && a.Run[0] == kind.Program {
				require.True(t, a.Sessions(), "%s: %v", path, a.Run)
			}
		}
	}
}
