package git

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	var many, deep []string
	for i := range 1200 {
		many, deep = append(many, fmt.Sprintf("f%04d", i)), append(deep, strings.Repeat("d", 4000))
	}
	long := "error: " + strings.Repeat("ü", 5000)
	for _, row := range []struct {
		name, contains string
		err            error
	}{
		{"a conflict", `"f0019"] and 1180 more`, &ConflictError{many}},
		{"deep paths", `["ddd`, &ConflictError{deep}},
		{"a refusal", `"f0000" "f0001"`, &RefusedError{Paths: many, Message: long}},
		{"git itself", "error: üü", &Error{Command: "add", Dir: "/somewhere", Message: long, Err: exec.ErrNotFound}},
	} {
		require.LessOrEqual(t, len(row.err.Error()), 2500, row.name)
		require.Contains(t, row.err.Error(), row.contains, row.name)
		require.Equal(t, strings.ToValidUTF8(row.err.Error(), ""), row.err.Error(), row.name)
	}
}
