package piview_test

import (
	"math"
	"testing"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/piview"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// A model of which little is known, or nonsense, can be sent (trap 20).
func TestModelOfWhichLittleIsKnown(t *testing.T) {
	for _, m := range []catalog.Model{
		{Ref: session.ModelRef{Provider: "p", ID: "m"}},
		{
			Ref: session.ModelRef{Provider: "p", ID: "m"}, API: "a", ContextWindow: -1, MaxOutput: -1,
			Cost: session.Cost{Input: math.NaN(), Output: math.Inf(1), CacheRead: -1},
		},
	} {
		s := &piwire.ServerSnapshot{ServerID: "s", Models: []piwire.ModelMetadata{piview.ModelMetadata(m)}}
		got := roundTrip(t, &piwire.ServerSnapshotEvent{Snapshot: s}).(*piwire.ServerSnapshotEvent).Snapshot.Models[0]
		if got.Name != "m" || got.ContextWindow != 1 || got.MaxTokens != 1 || len(got.SupportedThinkingLevels) != 1 || got.Cost != (piwire.ModelCost{}) {
			t.Errorf("got %+v", got)
		}
	}
}
