package pass

import (
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/pipeline/expression"
	"github.com/passbook-run/passbook/pipeline/template"
)

// lookup returns the value of a variable. Numbers that do not apply are empty.
func (v Vars) lookup(p template.Piece) (text string, known bool) {
	name := p.Name
	path := strings.Split(name, ".")
	if value, ok := v.Outputs[path[0]]; ok {
		if value = expression.Lookup(value, path[1:]); p.JSON {
			return expression.JSON(value), true
		}
		return expression.Text(value), true
	}
	if key, ok := template.WithKey(name); ok {
		return v.lookupWith(key)
	}
	for _, in := range v.Inputs {
		if in.Label == name {
			return in.Body, true
		}
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
		return numberOrEmpty(v.Pass), true
	case "passes":
		return numberOrEmpty(v.Passes), true
	case "set":
		return v.Set, true
	case "theme":
		return v.Theme, true
	case "n":
		return numberOrEmpty(v.Round), true
	case "item":
		return v.Item, true
	case "max":
		return numberOrEmpty(v.Rounds), true
	default:
		return "", false
	}
}

func (v Vars) lookupWith(key string) (string, bool) {
	i := slices.IndexFunc(v.With, func(t Text) bool { return t.Label == key })
	if i < 0 {
		return "", false
	}
	return v.With[i].Body, true
}

func numberOrEmpty(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
