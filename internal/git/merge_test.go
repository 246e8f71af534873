package git

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMergeTrees(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name               string
		base, ours, theirs files
		wants              files
		conflicts          []string
	}{
		{"both sides", files{"a": "a\n", "b": "b\n"}, files{"a": "2\n", "b": "b\n"}, files{"a": "a\n", odd: "n", "e": ""},
			files{"a": "2\n", odd: "n", "e": ""}, nil},
		{"a conflict", files{"a": "a\n", "b": "b\n"}, files{"a": "2\n"}, files{"a": "3\n", "b": "b\n"}, nil, []string{"a"}},
		{"attributes do not apply", files{".gitattributes": "* merge=union text ident\n", "a": "a\r\n"},
			files{".gitattributes": "* merge=union text ident\n", "a": "$Id$\r\n"},
			files{".gitattributes": "* merge=union text ident\n", "a": "a\r\n", "b": "b\r\n"},
			files{".gitattributes": "* merge=union text ident\n", "a": "$Id$\r\n", "b": "b\r\n"}, nil},
		{"from nothing", nil, files{"a": "a\n"}, nil, files{"a": "a\n"}, nil},
		{"to nothing", files{"a": "a\n"}, files{"a": "a\n"}, nil, nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := must(MergeTrees(t.Context(), filesOf(row.base), filesOf(row.ours), filesOf(row.theirs)))(t)
			require.Equal(t, row.conflicts, m.Conflicts)
			var wants []Merged
			for path, text := range row.wants {
				wants = append(wants, Merged{path, ModeFile, []byte(text)})
			}
			require.ElementsMatch(t, wants, m.Files)
		})
	}
}
