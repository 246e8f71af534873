package pipeline

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHashesStayAsRecorded compares the configuration hash and the SHA-256 of the plan of every definition in the tree
// with the recorded ones. Runs know their definition by the hash, and replay the plan.
func TestHashesStayAsRecorded(t *testing.T) {
	sources := map[string]string{"asking": asking, "healthy": healthy, "rich": rich,
		"small": strings.Replace(small, "more: here\n", "", 1)}
	for _, pattern := range []string{"../examples/*/*.yaml", "testdata/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			sources[path] = string(src)
		}
	}
	delete(sources, "testdata/ten-problems.yaml")
	var lines []string
	for name, src := range sources {
		d := parsed(t, []byte(src))
		plan, err := json.Marshal(Expand(d))
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%s %s %x\n", name, ConfigHash(d), sha256.Sum256(plan)))
	}
	slices.Sort(lines)
	golden(t, "hashes.txt", strings.Join(lines, ""))
}
