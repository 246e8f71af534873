package run

import "slices"

// SessionOf returns the session that the next call of a role in a stage continues; nil: it begins a new one.
func (s State) SessionOf(phase, role string) *KeptSession {
	for _, r := range s.Sessions {
		if r.Phase == phase && r.Role == role {
			return &r.KeptSession
		}
	}
	return nil
}

// keptSessions bounds the roles of a state that continue a session.
const keptSessions = 32

// keepSession replaces the session of a role with that of its accepted answer. Sessions end with their stage.
func (f *folder) keepSession(p *PassEnd, phase string) {
	if p.Outcome != CategoryOK || p.Member != "" || p.Session == nil && len(f.Sessions) == 0 {
		return
	}
	f.Sessions = slices.DeleteFunc(list(f, f.Sessions), func(r RoleSession) bool {
		return r.Role == p.Role && r.Phase == phase || r.Phase != phase && !r.Adopted()
	})
	if p.Session != nil {
		s := RoleSession{Phase: phase, Role: p.Role, KeptSession: *p.Session}
		f.Sessions = newest(append(f.Sessions, s), keptSessions)
	}
}
