package config

import "runtime/debug"

// BuildVersion returns the version the running program was built from: the
// module's version or the commit, with "+dirty" for uncommitted changes.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return describeBuild(info)
}

func describeBuild(info *debug.BuildInfo) string {
	version := info.Main.Version
	if version != "" && version != "(devel)" {
		return version
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if revision == "" {
		return "devel"
	}
	return revision + dirty
}
