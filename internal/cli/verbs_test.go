package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryVerbHasAGroup(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: &outlet{to: io.Discard}}
	root := a.root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	used := map[string]bool{}
	for _, cmd := range root.Commands() {
		require.True(t, cmd.GroupID != "" && root.ContainsGroup(cmd.GroupID), "%s has no group: add a row to verbs()",
			cmd.Name())
		used[cmd.GroupID] = true
	}
	for _, g := range groups() {
		require.True(t, used[g.ID], "group %s is empty", g.ID)
	}
}

func TestVerbTableNamesItsCommands(t *testing.T) {
	a := &app{}
	for _, v := range verbs() {
		require.Equal(t, v.name, v.new(a).Name())
	}
}

func TestHelpListsVerbsByGroup(t *testing.T) {
	var out strings.Builder
	require.Zero(t, Main([]string{"--help"}, strings.NewReader(""), &out, &out))
	_, rest, found := strings.Cut(out.String(), "Available Commands:")
	require.False(t, found, "verbs outside of the groups: %s", rest)
	at := 0
	for _, g := range groups() {
		i := strings.Index(out.String()[at:], "\n"+g.Title+"\n")
		require.Positive(t, i, "%s is missing, or not in order:\n%s", g.Title, out.String())
		at += i
	}
}
