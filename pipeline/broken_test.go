package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func brokenFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/broken/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 45)
	return paths
}

// TestParseReportsBrokenDefinitions compares all problems of each definition of testdata/broken with its golden file.
func TestParseReportsBrokenDefinitions(t *testing.T) {
	folder := folderFor([]byte("prompts/writer.md prompts/judge.md seed.html world.md a.md b.md"))
	folder["prompts/blank.md"] = file(" \n")
	folder["prompts/bad.md"] = file("Judge.\n{{refrences}}\n{{with.focus}} {{content}}\n")
	folder["schemas/list.json"] = file(`{"type": "array"}`)
	folder["schemas/object.json"] = file(`{"type": "object", "properties": {"files": {"type": "array"}}}`)
	folder["schemas/bad.json"] = file(`{"type": 5}`)
	folder["schemas/elsewhere.json"] = file(`{"$ref": "https://example.com/list.json"}`)
	for _, path := range brokenFiles(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			def, problems := Parse(name+".yaml", src, folder)
			require.Nil(t, def)
			golden(t, filepath.Join("broken", name+".golden"), problems.Error()+"\n")
		})
	}
}
