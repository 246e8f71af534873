package expression

import "github.com/expr-lang/expr/types"

// Types of variables.
var (
	Bool   Type = types.Bool
	Number Type = types.Float64
	Whole  Type = types.Int
	String Type = types.String
	Any    Type = types.Any
)

// List is the type of a list.
func List(of Type) Type { return types.Array(of) }

// Object is the type of a value with these members and no others.
func Object(members map[string]Type) Type { return types.Map(members) }

// OfSchema is the type of the values that fit a JSON Schema, as far as its keywords type, properties, items, const and enum
// say. An object that names its properties has no others, unless additionalProperties permits it.
func OfSchema(schema any) Type {
	s, ok := schema.(map[string]any)
	if !ok {
		return types.Any
	}
	switch s["type"] {
	case "string":
		return types.String
	case "boolean":
		return types.Bool
	case "number", "integer":
		return types.Float64
	case "array":
		return types.Array(OfSchema(s["items"]))
	case "object":
		return ofObject(s)
	}
	return types.Any
}

func ofObject(s map[string]any) Type {
	properties, named := s["properties"].(map[string]any)
	members := types.Map{}
	for name, property := range properties {
		members[name] = OfSchema(property)
	}
	more, open := s["additionalProperties"]
	if !named || open && more != false {
		members[types.Extra] = types.Any
	}
	return members
}

// Member returns the type of a member; false: the type has no such member.
func Member(t Type, path []string) (Type, bool) {
	for _, key := range path {
		if t == types.Any {
			return t, true
		}
		m, ok := t.(types.Map)
		if !ok {
			return nil, false
		}
		next, there := m[key]
		if !there {
			next, there = m[types.Extra]
		}
		if !there || key == types.Extra {
			return nil, false
		}
		t = next
	}
	return t, true
}

// IsList reports whether values of a type are, or may be, lists.
func IsList(t Type) bool {
	return t == types.Any || t.Nature().Type != nil && t.Nature().Type.Kind().String() == "slice"
}

// Members lists the members of a type that it names.
func Members(t Type) (names []string) {
	m, _ := t.(types.Map)
	for name := range m {
		if name != types.Extra {
			names = append(names, name)
		}
	}
	return names
}
