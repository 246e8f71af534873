package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

// objects are mappings with a closed set of keys: their place in the schema, and a definition with
// KEY in one.
var objects = []struct{ at, src string }{
	{"", "KEY: 1"},
	{"/$defs/agent/else", "agent: {KEY: 1}"},
	{"/$defs/agent/else/properties/price", "agent: {run: [a], price: {KEY: 1}}"},
	{"/$defs/agent/else/properties/usage", "agent: {run: [a], usage: {KEY: 1}}"},
	{"/properties/inputs/additionalProperties", "inputs: {a: {KEY: 1}}"},
	{"/properties/limits", "limits: {KEY: 1}"},
	{"/$defs/limits", "roles: {r: {limits: {KEY: 1}}}"},
	{"/$defs/limits/properties/backoff", "limits: {backoff: {KEY: 1}}"},
	{"/$defs/limits/properties/wait", "limits: {wait: {KEY: 1}}"},
	{"/$defs/limits/properties/unknown_reset", "limits: {unknown_reset: {KEY: 1}}"},
	{"/$defs/limits/properties/after_reset", "limits: {after_reset: {KEY: 1}}"},
	{"/$defs/limits/properties/tree", "limits: {tree: {KEY: 1}}"},
	{"/properties/budget", "budget: {KEY: 1}"},
	{"/properties/budget/properties/per_pass", "budget: {usd: 1, per_pass: {KEY: 1}}"},
	{"/properties/artifact", "artifact: {KEY: 1}"},
	{"/properties/workspace", "workspace: {KEY: 1}"},
	{"/properties/questions", "questions: {KEY: 1}"},
	{"/properties/delivery", "delivery: {KEY: 1}"},
	{"/properties/notify/items", "notify: [{KEY: 1}]"},
	{"/$defs/step/properties/ask/then", "stages: [{steps: [{ask: {KEY: 1}}]}]"},
	{"/properties/notes/additionalProperties", "notes: {a: {KEY: 1}}"},
	{"/properties/corpus/additionalProperties", "corpus: {a: {KEY: 1}}"},
	{"/$defs/project", "projects: {a: {KEY: 1}}"},
	{"/$defs/role", "roles: {r: {KEY: 1}}"},
	{"/$defs/check", "roles: {r: {checks: [{KEY: 1}]}}"},
	{"/$defs/role/properties/score", "roles: {r: {score: {KEY: 1}}}"},
	{"/$defs/role/properties/verdict", "roles: {r: {verdict: {KEY: 1}}}"},
	{"/$defs/stage", "stages: [{KEY: 1}]"},
	{"/$defs/stage/properties/repeat", "stages: [{repeat: {KEY: 1}}]"},
	{"/$defs/stage/properties/each", "stages: [{each: {KEY: 1}}]"},
	{"/$defs/stage/properties/merge", "stages: [{merge: {KEY: 1}}]"},
	{"/$defs/order/then", "stages: [{for_each: corpus, orders: {A: {KEY: 1}}}]"},
	{"/$defs/step", "stages: [{steps: [{KEY: 1}]}]"},
	{"/$defs/step/properties/screenshots", "stages: [{steps: [{screenshots: {KEY: 1}}]}]"},
}

// A key that the parser does not know makes it list all that it knows: those are the schema's, no more and no fewer.
func TestSchemaHasTheKeysOfTheParser(t *testing.T) {
	listed := regexp.MustCompile(`unknown key "strange-and-very-long-key" in .*; write one of: (.*)`)
	for _, o := range objects {
		t.Run("at "+o.at, func(t *testing.T) {
			_, problems := Parse("x.yaml", []byte(strings.Replace(o.src, "KEY", "strange-and-very-long-key", 1)),
				folderFor(nil))
			m := listed.FindStringSubmatch(problems.Error())
			require.NotNil(t, m, problems.Error())
			known := schemaAt(t, o.at)["properties"].(map[string]any)
			require.ElementsMatch(t, strings.Split(m[1], ", "), slices.Collect(maps.Keys(known)))
		})
	}
}

// The rows of objects are all closed mappings, and each of their keys has a description.
func TestEveryKeyIsDescribed(t *testing.T) {
	found := map[string]bool{}
	walkSchema(schemaAt(t, ""), "", func(at string, s map[string]any) {
		if s["additionalProperties"] != false {
			return
		}
		found[at] = true
		for key, value := range s["properties"].(map[string]any) {
			require.NotEmpty(t, value.(map[string]any)["description"], "%s of %s", key, at)
		}
	})
	for _, o := range objects {
		delete(found, o.at)
	}
	for _, key := range []string{"backoff", "wait", "unknown_reset", "after_reset", "tree"} {
		delete(found, "/properties/limits/properties/"+key) // the same as in /$defs/limits
	}
	require.Empty(t, found, "closed mappings without a row of objects")
}

// The guide's tables of keys, by heading, are the schema's.
func TestGuideDocumentsEveryKey(t *testing.T) {
	page, err := os.ReadFile("../docs/pipelines.md")
	require.NoError(t, err)
	for heading, at := range map[string]string{"## The keys": "", "### Roles": "/$defs/role",
		"### Stages": "/$defs/stage"} {
		_, section, ok := strings.Cut(string(page), "\n"+heading+"\n")
		require.True(t, ok, heading)
		section, _, _ = strings.Cut(section, "\n##")
		var received []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1) {
			received = append(received, m[1])
		}
		known := slices.Collect(maps.Keys(schemaAt(t, at)["properties"].(map[string]any)))
		if heading == "### Stages" { // the next section documents these two
			known = slices.DeleteFunc(known, func(key string) bool { return key == "steps" || key == "passes" })
		}
		require.ElementsMatch(t, known, received, heading)
	}
}

// schemaAt is the part of the published schema at a JSON pointer.
func schemaAt(t *testing.T, pointer string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(publishedSchema)
	require.NoError(t, err)
	var s map[string]any
	require.NoError(t, json.Unmarshal(data, &s))
	for _, step := range strings.Split(pointer, "/")[1:] {
		next, ok := s[step].(map[string]any)
		require.True(t, ok, "%s: no %s", pointer, step)
		s = next
	}
	return s
}

func walkSchema(v any, at string, visit func(at string, s map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(at, v)
		for key, value := range v {
			walkSchema(value, at+"/"+key, visit)
		}
	case []any:
		for i, value := range v {
			walkSchema(value, fmt.Sprintf("%s/%d", at, i), visit)
		}
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
