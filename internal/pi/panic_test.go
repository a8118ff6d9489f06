package pi_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/piwire"
)

// A fault in the work for one connection ends that connection, and nothing else.
func TestPanicEndsOneConnection(t *testing.T) {
	for name, do := range map[string]func(r *rig) *peer{
		"hello": func(r *rig) *peer {
			p := r.peer()
			p.send(&piwire.Hello{Version: 1})
			return p
		},
		"request": func(r *rig) *peer {
			p := r.ready()
			p.ask("1", &piwire.Create{})
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var broken atomic.Bool
				r := newRig(t, func(o *pi.Options) {
					models := o.Models
					o.Models = func() []catalog.Model {
						if broken.Load() {
							panic("broken")
						}
						return models()
					}
				})
				check := r.bystander()
				if name == "request" {
					r.engine.panics.Store(true)
				} else {
					broken.Store(true)
				}
				p := do(r)
				if !p.ended() {
					t.Errorf("the connection goes on: %q", tell(p.take()))
				}
				broken.Store(false)
				check()
			})
		})
	}
}
