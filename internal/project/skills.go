package project

import (
	"errors"
	"io/fs"

	"github.com/roost-dev/roost/internal/workspace"
)

// skillsIn reads the skills in a folder of folders.
func (r *reader) skillsIn(folder workspace.Name) {
	for _, name := range r.entries(folder) {
		f, ok := r.openSkill(folder.Join(name))
		if !ok {
			continue
		}
		fields, _, err := frontMatter(f.text)
		if err != nil {
			r.notice("%s is left out: %v", f.path, err)
			continue
		}
		s := Skill{Name: line(fields["name"].text, maxName), Description: line(fields["description"].text, maxDescription), Path: f.path}
		if s.Name == "" {
			s.Name = line(name, maxName)
		}
		r.addSkill(s)
	}
}

// openSkill opens the SKILL.md in dir, which may be a link to a folder, and is often a file
// that has nothing to do with skills.
func (r *reader) openSkill(dir workspace.Name) (file, bool) {
	resolved, err := r.root.Resolve(r.root.Real(dir))
	if err != nil {
		r.notice("%s is left out: %v", r.show(dir), err)
		return file{}, false
	}
	if info, err := r.root.Lstat(resolved); err != nil || !info.IsDir() {
		return file{}, false
	}
	return r.open(dir.Join("SKILL.md"))
}

func (r *reader) addSkill(s Skill) {
	switch {
	case r.seen["skill "+s.Name]:
		r.notice("%s is left out: another skill is called %s", s.Path, s.Name)
	case len(r.project.Skills) == MaxSkills:
		r.notice("%s is left out: there are more than %d skills", s.Path, MaxSkills)
	case !r.spend(len(s.Name) + len(s.Description) + len(s.Path)):
		r.notice("%s is left out: rules and skills together are larger than %d bytes", s.Path, MaxTotal)
	default:
		r.seen["skill "+s.Name] = true
		r.project.Skills = append(r.project.Skills, s)
	}
}

// userSkills reads the user's own skills, whose paths are shown as absolute ones. Those of
// the project win. The directory need not exist.
func (r *reader) userSkills(dir string) {
	root, err := workspace.Open(dir, true)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		r.notice("the user's skills are left out: %v", err)
		return
	}
	u := *r
	u.root, u.base = root, dir
	u.skillsIn(".")
	if err := root.Close(); err != nil {
		u.notice("%s: %v", dir, err)
	}
	r.project, r.left = u.project, u.left
}
