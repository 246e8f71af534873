package cli

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// TestJSONObjectsAreDocumented compares the objects that docs/json.md lists with their types.
func TestJSONObjectsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/json.md")
	require.NoError(t, err)
	for row, object := range map[string]any{
		"`list`: `standing`":    run.EffectiveStatus{},
		"`diff`: file":          api.ChangedFile{},
		"`store gc`: `objects`": operations.GarbageItem{},
		"`doctor`: check":       host.Check{},
		"`config`: setting":     config.Setting{},
	} {
		_, cell, found := strings.Cut(strings.ReplaceAll(string(page), "\n  ", " "), "\n- "+row+": ")
		require.True(t, found, row)
		cell, _, _ = strings.Cut(cell, "\n")
		cell = regexp.MustCompile(`\([^)]*\)|;[^;]* are \x60[^;]*`).ReplaceAllString(cell, "") // values of keys
		var listed []string
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cell, -1) {
			listed = append(listed, m[1])
		}
		require.ElementsMatch(t, jsonFields(object), listed, row)
	}
	require.ElementsMatch(t, jsonFields(pipeline.Plan{}), jsonKeys(t)["plan"], "no definition has all keys")
}

// jsonFields are the JSON keys of a struct.
func jsonFields(object any) (keys []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(object)) {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous {
			keys = append(keys, key)
		}
	}
	return keys
}
