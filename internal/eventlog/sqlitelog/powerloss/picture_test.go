//go:build linux

package powerloss

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// picture is the content of the files of a directory after a loss of power.
type picture map[string][]byte

// picture is what is left when the power goes now: what was synced, and of what came after, as
// chance has it, nothing, all, the beginning, some of the writes or some of their sectors. As
// each sector holds any of its versions, writes need not reach the disk in their order.
func (d *disk) picture(random *rand.Rand) picture {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := maps.Clone(d.synced)
	keep := chance(random)
	for _, m := range d.moves {
		switch {
		case !keep():
		case m.file == nil:
			delete(names, m.name)
		default:
			names[m.name] = m.file
		}
	}
	p := make(picture)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p[name] = names[name].torn(random)
		if random.IntN(3) == 0 {
			d.shared(p, name+"-shm", random)
		}
	}
	return p
}

// shared adds the file of the memory that connections share, which is never synced: as it is
// now, or full of nonsense.
func (d *disk) shared(p picture, name string, random *rand.Rand) {
	content, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		return // there is none
	}
	if random.IntN(2) == 0 {
		noise(random, content)
	}
	p[name] = content
}

// chance returns a coin: for nothing, for all, for what is before some point, or for some.
func chance(random *rand.Rand) func() bool {
	switch random.IntN(5) {
	case 0:
		return func() bool { return false }
	case 1:
		return func() bool { return true }
	case 2:
		left := random.IntN(40)
		return func() bool { left--; return left >= 0 }
	}
	p := random.Float64()
	return func() bool { return random.Float64() < p }
}

// torn is the content of a file that was not synced.
func (f *file) torn(random *rand.Rand) []byte {
	content, keep, whole := slices.Clone(f.durable), chance(random), random.IntN(2) == 0
	fill := func(b []byte) {
		if random.IntN(2) == 0 {
			noise(random, b)
		}
	}
	for _, c := range f.changes {
		switch {
		case c.data == nil:
			if keep() {
				content = resize(content, c.off, fill)
			}
		case whole:
			if keep() {
				content = c.put(content, c.off, c.end(), fill)
			}
		default:
			for from := c.off; from < c.end(); {
				to := min(c.end(), (from/sector+1)*sector)
				if keep() {
					content = c.put(content, from, to, fill)
				}
				from = to
			}
			if keep() { // the size is on the disk, and the data may not be
				content = resize(content, max(int64(len(content)), c.end()), fill)
			}
		}
	}
	return content
}

func (c change) end() int64 { return c.off + int64(len(c.data)) }

// put writes the part of c from one offset to another.
func (c change) put(content []byte, from, to int64, fill func([]byte)) []byte {
	content = resize(content, max(int64(len(content)), to), fill)
	copy(content[from:to], c.data[from-c.off:to-c.off])
	return content
}

// noise is what was on the disk before.
func noise(random *rand.Rand, b []byte) {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], random.Uint64())
	_, _ = rand.NewChaCha8(seed).Read(b) // never fails
}
