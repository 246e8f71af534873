package template

import "slices"

// Parts lists the parts of a prompt that a template may place, in their order when it does not place them.
func Parts() []string {
	return []string{"context", "references", "notes", "replies", "pictures", "artifact", "files", "content"}
}

// Feedback places the operator's feedback for an extra round.
const Feedback = "feedback"

// Parent places the brief of the run that this one follows up.
const Parent = "parent"

// Variables lists the placeholders for a word or a number. {{with.KEY}} is not in this list.
func Variables() []string {
	return []string{"task", "base", "description", "role", "pass", "passes", "set", "theme", "n", "max", "item"}
}

// Reserved lists the placeholders that every pipeline has.
func Reserved() []string { return slices.Concat(Parts(), []string{Parent, Feedback}, Variables()) }

// Unknown returns the placeholders of src that have no value. with lists the keys that the role defines; nil allows any
// key. known are all other names.
func Unknown(src string, with, known []string) []Piece {
	return slices.DeleteFunc(Scan(src), func(p Piece) bool {
		key, isWith := WithKey(p.Name)
		return p.Name == "" || slices.Contains(known, p.Name) || isWith && (with == nil || slices.Contains(with, key))
	})
}

// Placed lists the parts that src places itself, in the order of Parts.
func Placed(src string) []string {
	found := map[string]bool{}
	for _, p := range Scan(src) {
		found[p.Name] = true
	}
	var placed []string
	for _, part := range Parts() {
		if found[part] {
			placed = append(placed, part)
		}
	}
	return placed
}
