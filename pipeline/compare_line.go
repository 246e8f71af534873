package pipeline

import (
	"slices"
	"strconv"
)

// Locate returns where a definition has the value at a path of a [Difference]: its line, from 1, and its path there,
// which is another one if the value is inherited. Without the value it is the line of what is around it.
func Locate(src []byte, path []string) (at []string, line int) {
	d := &decoder{}
	root := d.document(src)
	if root == nil || len(d.found) > 0 {
		return path, 1
	}
	d.root = d.flatten(root)
	key, _, ok := d.find(d.written(path))
	if i := slices.Index(path, "limits"); !ok && i > 0 { // roles and steps inherit the definition's
		if inherited, _, ok := d.find(location(path[i:])); ok {
			return path[i:], max(inherited.Line, 1)
		}
	}
	return path, max(key.Line, 1)
}

// written is a path as the file has it: stages are a list there, and steps of a stage for each set are passes.
func (d *decoder) written(path []string) location {
	at := slices.Clone(location(path))
	if len(at) < 2 || at[0] != "stages" {
		return at
	}
	for i := range d.items(location{"stages"}) {
		if name := d.get(location{"stages", strconv.Itoa(i), "name"}); name != nil && name.Value == at[1] {
			at[1] = strconv.Itoa(i)
			break
		}
	}
	if len(at) > 2 && at[2] == "steps" && d.get(at[:3]) == nil {
		at[2] = "passes"
	}
	return at
}
