package pass

import (
	"slices"
	"strconv"

	"github.com/passbook-run/passbook/pipeline/template"
)

// value is what a variable stands for. Numbers that do not apply, which are 0, stand for nothing.
func (v Vars) value(name string) (text string, known bool) {
	if key, ok := template.WithKey(name); ok {
		return v.with(key)
	}
	switch name {
	case "task":
		return v.Task, true
	case "base":
		return v.Base, true
	case "description":
		return v.Description, true
	case "role":
		return v.Role, true
	case "pass":
		return counted(v.Pass), true
	case "passes":
		return counted(v.Passes), true
	case "set":
		return v.Set, true
	case "theme":
		return v.Theme, true
	case "n":
		return counted(v.Round), true
	case "max":
		return counted(v.Rounds), true
	default:
		return "", false
	}
}

func (v Vars) with(key string) (string, bool) {
	i := slices.IndexFunc(v.With, func(t Text) bool { return t.Label == key })
	if i < 0 {
		return "", false
	}
	return v.With[i].Body, true
}

func counted(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
