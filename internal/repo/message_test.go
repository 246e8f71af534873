package repo

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	var paths []string
	for i := range 1200 {
		paths = append(paths, fmt.Sprintf("f%04d", i))
	}
	long := "error: " + strings.Repeat("ü", 5000)
	for name, err := range map[string]error{
		"a conflict": &ConflictError{Paths: paths, Message: long},
		"a refusal":  &RefusedError{Paths: paths, Message: long},
		"git itself": &Error{Command: "apply", Dir: "/somewhere", Message: long, Err: exec.ErrNotFound},
	} {
		require.LessOrEqual(t, len(err.Error()), 2500, name)
		require.Contains(t, err.Error(), "error: üü", name)
		require.True(t, strings.ToValidUTF8(err.Error(), "") == err.Error(), name)
		if name != "git itself" {
			require.Contains(t, err.Error(), `"f0000" "f0001"`, name)
			require.Contains(t, err.Error(), `"f0019"] and 1180 more`, name)
		}
	}
	require.Equal(t, `the patch does not apply to ["a" "b"]: no`,
		(&ConflictError{Paths: []string{"a", "b"}, Message: "no"}).Error())

	var deep []string
	for range 20 {
		deep = append(deep, strings.Repeat("d", 4000))
	}
	require.LessOrEqual(t, len((&ConflictError{Paths: deep, Message: "no"}).Error()), 1200)
}
