package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsageOfPlainText(t *testing.T) {
	for name, row := range map[string]struct{ agent, want string }{
		"tokens": {`reply: text, usage: {find: '(?P<input>\d+) in, (?P<output>\d+) out'}`, ""},
		"no group": {`reply: text, usage: {find: '(\d+) in'}`,
			"has no named group; write one such as (?P<output>[0-9]+)"},
		"another name": {`reply: text, usage: {find: '(?P<tokens>\d+)'}`,
			`has a group "tokens"; name its groups input, output`},
		"a mistake": {`reply: text, usage: {find: '(?P<input>'}`, "is not a regular expression: missing closing )"},
		"an agent that reports": {`reply: claude-stream, usage: {find: '(?P<input>\d+)'}`,
			"is for reply: text, and claude-stream reports what a call used; leave it out"},
		"a budget in USD":     {"reply: text, usage: {find: '(?P<usd>[0-9.]+) USD'}}\nbudget: {usd: 5", ""},
		"a budget and no USD": {"reply: text, usage: {find: '(?P<input>[0-9.]+)'}}\nbudget: {usd: 5", "write price: "},
		"a budget and a price": {
			"reply: text, price: {input: 1, output: 2}, usage: {find: '(?P<input>[0-9.]+)'}}\nbudget: {usd: 5", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(healthy, "reply: text", row.agent, 1)
			_, problems := Parse("x.yaml", []byte(text), folderFor([]byte(healthy)))
			var all []string
			for _, p := range problems {
				all = append(all, p.What)
			}
			if row.want == "" {
				require.Empty(t, all)
			} else {
				require.Len(t, all, 1)
				require.Contains(t, all[0], row.want)
			}
		})
	}
}
