// Package build is what a binary knows of its own making. deploy/build stamps it; any
// other build goes by what Go has recorded.
package build

import (
	"runtime/debug"

	"github.com/loomgate/loomgate/spi"
)

// Set by the linker.
var version, commit string

// Writer is the version of the events group that this binary writes as. A test of two
// versions side by side sets it, before anything is opened.
var Writer = spi.Versions()[spi.Events]

// Info is a build.
type Info struct {
	Version   string // a tag, a pseudo-version, or "(devel)"
	Commit    string // "unknown" if neither a stamp nor Go says it
	Modified  bool   // the sources differed from the commit
	GoVersion string
}

// Read returns the build of this binary.
func Read() Info {
	i := Info{Version: version, Commit: commit}
	recorded, ok := debug.ReadBuildInfo()
	if ok {
		i.GoVersion = recorded.GoVersion
		if i.Version == "" {
			i.Version = recorded.Main.Version
		}
		for _, s := range recorded.Settings {
			switch {
			case s.Key == "vcs.revision" && i.Commit == "":
				i.Commit = s.Value
			case s.Key == "vcs.modified":
				i.Modified = s.Value == "true"
			}
		}
	}
	if i.Version == "" {
		i.Version = "(devel)"
	}
	if i.Commit == "" {
		i.Commit = "unknown"
	}
	return i
}

// String is the build in a line.
func (i Info) String() string {
	s := i.Version + " (commit " + i.Commit
	if i.Modified {
		s += ", modified"
	}
	return s + ", " + i.GoVersion + ")"
}
