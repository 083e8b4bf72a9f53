package mutants

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/loomgate/loomgate/spi"
)

var refs = []Mutant{
	{
		"refs tie NFC with NFD",
		"Two names that look the same are one to the order, and a page after one skips the other.",
		"refs/refs are listed in code point order, each once, whatever the size of a page",
		store(func(s sound) methods { return tiesNFC{s} }),
	},
	{
		"ref version reused",
		"Versions of a name count from 1 again after its deletion.",
		"refs/no version of a name is used again, not even after a deletion",
		store(func(s sound) methods { return versionReused{s} }),
	},
	{
		"promote without compare",
		"A promotion repoints a ref whatever its version is.",
		"refs/a promotion is refused at another version",
		store(func(s sound) methods { return promoteWithoutCompare{s} }),
	},
	{
		"promote that compares first",
		"The version is compared before the write, not in it.",
		"refs/of eight who promote one version at once one wins",
		store(func(s sound) methods { return promoteCheckThenAct{s} }),
	},
	{
		"promote that creates",
		"A promotion of a name that is not there makes it.",
		"refs/a promotion never creates a ref",
		store(func(s sound) methods { return promoteCreates{s} }),
	},
	{
		"put over what is there",
		"A put that expects a new name replaces the one that is there.",
		"refs/a put that expects a new name is refused where there is one",
		store(func(s sound) methods { return putOver{s} }),
	},
	{
		"lineage oldest first",
		"The lineage comes in the order in which it was written.",
		"refs/the lineage is the earlier places, newest first, whatever the size of a page",
		store(func(s sound) methods { return lineageOldestFirst{s} }),
	},
	{
		"refs from a cache",
		"A listing shows refs as they were when one was listed first.",
		"refs/promoted, deleted and re-created refs are listed as they are by then",
		store(func(s sound) methods { return &refsFromCache{sound: s} }),
	},
}

type tiesNFC struct{ sound }

func (m tiesNFC) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	whole := req
	whole.After, whole.Limit = "", spi.MaxLimit
	res, err := m.sound.ListRefs(ctx, whole)
	composed := strings.NewReplacer("e\u0301", "é")
	res.Refs, res.Next = page(res.Refs, refName, req.After, req.Limit, func(a, b string) int {
		return strings.Compare(composed.Replace(a), composed.Replace(b))
	})
	return res, err
}

func refName(r spi.Ref) string { return string(r.Name) }

// versionReused counts the places that a name has had since it was created.
type versionReused struct{ sound }

func (m versionReused) version(ctx context.Context, route spi.Route, name spi.RefName) int64 {
	res, err := m.RefLineage(ctx, spi.RefLineageRequest{Route: route, Name: name, Limit: spi.MaxLimit})
	if err != nil {
		return 0
	}
	return int64(len(res.Refs)) + 1
}

func (m versionReused) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	now := m.version(ctx, req.Route, req.Name)
	if req.ExpectedVersion != spi.AnyVersion && req.ExpectedVersion != now {
		return spi.PutRefResponse{}, &spi.RefVersionError{Name: req.Name, Current: now}
	}
	req.ExpectedVersion = spi.AnyVersion
	res, err := m.sound.PutRef(ctx, req)
	res.Ref.Version = now + 1
	return res, err
}

func (m versionReused) GetRef(ctx context.Context, req spi.GetRefRequest) (spi.GetRefResponse, error) {
	res, err := m.sound.GetRef(ctx, req)
	res.Ref.Version = m.version(ctx, req.Route, req.Name)
	return res, err
}

type promoteWithoutCompare struct{ sound }

func (m promoteWithoutCompare) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	if now, err := m.GetRef(ctx, spi.GetRefRequest{Route: req.Route, Name: req.Name}); err == nil {
		req.ExpectedVersion = now.Ref.Version
	}
	return m.sound.PromoteRef(ctx, req)
}

type promoteCheckThenAct struct{ sound }

func (m promoteCheckThenAct) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	now, err := m.GetRef(ctx, spi.GetRefRequest{Route: req.Route, Name: req.Name})
	if err == nil && now.Ref.Version == req.ExpectedVersion {
		pause()
		return promoteWithoutCompare(m).PromoteRef(ctx, req)
	}
	return m.sound.PromoteRef(ctx, req)
}

type promoteCreates struct{ sound }

func (m promoteCreates) PromoteRef(ctx context.Context, req spi.PromoteRefRequest) (spi.PromoteRefResponse, error) {
	if _, err := m.GetRef(ctx, spi.GetRefRequest{Route: req.Route, Name: req.Name}); err != nil {
		req.ExpectedVersion = 0
		res, err := m.PutRef(ctx, spi.PutRefRequest(req))
		return spi.PromoteRefResponse(res), err
	}
	return m.sound.PromoteRef(ctx, req)
}

type putOver struct{ sound }

func (m putOver) PutRef(ctx context.Context, req spi.PutRefRequest) (spi.PutRefResponse, error) {
	if req.ExpectedVersion == 0 {
		req.ExpectedVersion = spi.AnyVersion
	}
	return m.sound.PutRef(ctx, req)
}

type lineageOldestFirst struct{ sound }

func (m lineageOldestFirst) RefLineage(ctx context.Context, req spi.RefLineageRequest) (spi.RefLineageResponse, error) {
	res, err := m.sound.RefLineage(ctx, req)
	slices.Reverse(res.Refs)
	return res, err
}

type refsFromCache struct {
	sound
	mu     sync.Mutex
	cached []spi.Ref
}

func (m *refsFromCache) ListRefs(ctx context.Context, req spi.ListRefsRequest) (spi.ListRefsResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cached == nil {
		res, err := m.sound.ListRefs(ctx, spi.ListRefsRequest{Limit: spi.MaxLimit})
		if err != nil {
			return res, err
		}
		m.cached = res.Refs
	}
	var res spi.ListRefsResponse
	all := slices.DeleteFunc(slices.Clone(m.cached), func(r spi.Ref) bool { return !spi.Seek(req.Prefix, req.After).Contains(string(r.Name)) })
	res.Refs, res.Next = page(all, refName, "", req.Limit, strings.Compare)
	return res, nil
}
