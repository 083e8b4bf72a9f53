package api

import (
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// onWire is what of a store's caps can be offered over the wire.
const onWire = spi.AllCaps &^ (spi.CapDataKeys | spi.CapRewrapDataKey)

// EncodeStack returns what a server tells of a store that offers offered.
func EncodeStack(offered spi.Caps) *pb.GetStackResponse {
	m := &pb.GetStackResponse{Offered: (offered & onWire).Names(), Versions: map[string]*pb.Version{}}
	for group, version := range spi.Versions() {
		if group != spi.DataKeys {
			m.Versions[string(group)] = encodeVersion(version)
		}
	}
	return m
}

// DecodeStack returns what a client can call, and the versions of the groups there.
func DecodeStack(m *pb.GetStackResponse) (offered spi.Caps, versions map[spi.Group]spi.Version) {
	versions = make(map[spi.Group]spi.Version, len(m.GetVersions()))
	for group, version := range m.GetVersions() {
		versions[spi.Group(group)] = decodeVersion(version)
	}
	return spi.ParseCaps(m.GetOffered()) & onWire, versions
}
