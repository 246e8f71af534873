package pipeline

import (
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, name := range []string{"corpus-integration.yaml", "plan-implement-review.yaml", "turn-loop.yaml",
		"ten-problems.yaml"} {
		f.Add(read(f, name))
	}
	for _, src := range []string{healthy, rich, "", "- a", "a: &a {<<: *a}", "pipeline: &p [*p]", "agent: *x",
		"? [a]\n: b", "{<<: [3]}", "\xff", "--- a\n--- b"} {
		f.Add([]byte(src))
	}
	for _, c := range mistakes {
		f.Add([]byte(strings.Replace(healthy, c.old, c.new, 1)))
	}
	folder := folderFor([]byte(healthy + rich))
	f.Fuzz(func(t *testing.T, src []byte) {
		def, problems := Parse("x.yaml", src, folder)
		if (def == nil) == (len(problems) == 0) {
			t.Fatalf("a definition and %d problems", len(problems))
		}
		for _, p := range problems {
			if strings.Contains(p.What, "value that is not allowed") {
				t.Fatalf("a problem without a reason: %+v", p)
			}
			if p.Line < 1 || p.What == "" || p.File == "" {
				t.Fatalf("a problem without a place: %+v", p)
			}
		}
		if def != nil {
			Expand(def)
		}
	})
}
