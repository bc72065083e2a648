package ring

// Counting returns the members of a view that count for a majority: those that own something now,
// or will when the changes under way are complete. The data of a removed member are gone, so it has
// no say.
func Counting(v *View) (ids []ID) {
	for i := range v.config.Members {
		if m := &v.config.Members[i]; m.State != Removed &&
			(Current.has(m.State) || Future.has(m.State)) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Majority reports whether more than half of the members are among some: of those of now, and of
// those that there will be when the changes under way are complete. Any two majorities of one view
// have a member in common, and so have those of a view and of the one that follows it.
func Majority(v *View, among func(ID) bool) bool {
	for role := range Role(roles) {
		have, all := 0, 0
		for i := range v.config.Members {
			m := &v.config.Members[i]
			if m.State == Removed || !role.has(m.State) {
				continue
			}
			if all++; among(m.ID) {
				have++
			}
		}
		if 2*have <= all {
			return false
		}
	}
	return true
}
