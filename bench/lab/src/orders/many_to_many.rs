//! Students and courses.
//!
//! ```text
//! columns     students: s00000001  i:name  r:c00000007 = title ...      courses: c00000007  i:title  r:s00000001 = name ...
//! relation    s00000001c00000007  i:v = title    and    c00000007s00000001  i:v = name
//! one way     s00000001c00000007  i:v = title, i:n = name
//! ```

use basalt_client::FamilySchema;
use basalt_load::data::Data;
use basalt_load::error::Result;
use basalt_load::load::choose::fnv_hash;
use basalt_load::session::{Answer, RowCells, RowScan};
use bytes::Bytes;

use super::{INFO, RELATED, ROWS_PER_FETCH, Run, cell, chosen, describe_writing, key, row};
use crate::claims::{PartReport, Rule, Way};
use crate::{Asked, Caller, Question, compare, describe};

/// Enrolment of students in courses: a function of the numbers alone.
#[derive(Clone, Copy, Debug)]
struct Enrolment {
    students: u64,
    courses: u64,
    /// Courses of a student.
    each: u64,
}

impl Enrolment {
    /// The courses of a student, ascending, each once.
    fn courses_of(&self, student: u64) -> Vec<u64> {
        let first = fnv_hash(student) % self.courses;
        let mut courses: Vec<u64> = (0..self.each.min(self.courses))
            .map(|place| (first + place * self.step()) % self.courses)
            .collect();
        courses.sort_unstable();
        courses.dedup();
        courses
    }

    fn step(&self) -> u64 {
        (self.courses / self.each.max(1)).max(1)
    }

    /// The students of every course, ascending.
    fn students_by_course(&self) -> Vec<Vec<u64>> {
        let mut students = vec![Vec::new(); usize::try_from(self.courses).unwrap_or(usize::MAX)];
        for student in 0..self.students {
            for course in self.courses_of(student) {
                if let Some(list) = usize::try_from(course).ok().and_then(|at| students.get_mut(at)) {
                    list.push(student);
                }
            }
        }
        students
    }
}

fn name(data: &Data, student: u64) -> Bytes {
    Bytes::from(data.text(student, || format!("Student {student}")))
}

fn title(data: &Data, course: u64) -> Bytes {
    Bytes::from(data.text(course, || format!("Lectures on {course}")))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    /// Tables `students` and `courses`.
    Columns,
    /// One table, both directions.
    Relation,
    /// One table, by student only.
    OneWay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    CoursesOf,
    StudentsOf,
}

/// Keys of the related things, and their names or titles.
struct Related {
    stored: Stored,
    asks: Asks,
    things: u64,
}

impl Question for Related {
    async fn ask(&self, caller: &Caller, index: u64) -> Answer<Vec<Bytes>> {
        let number = chosen(index, self.things);
        let (letter, table) = match self.asks {
            Asks::CoursesOf => ('s', 0),
            Asks::StudentsOf => ('c', 1),
        };
        let of = key(letter, number);
        let mut found = Vec::new();
        if self.stored == Stored::Columns {
            for row in caller.get(table, &[of], &[]).await? {
                let related = row.cells.into_iter().filter(|cell| cell.family == RELATED);
                found.extend(related.flat_map(|cell| [cell.qualifier, cell.value]));
            }
            return Ok(found);
        }
        let reversed = (self.stored, self.asks) == (Stored::OneWay, Asks::StudentsOf);
        let scan = if reversed {
            RowScan {
                rows_per_fetch: ROWS_PER_FETCH,
                ..RowScan::default()
            }
        } else {
            RowScan::prefix(of.clone(), ROWS_PER_FETCH)
        };
        for row in caller.scan(0, &scan).await? {
            let (one, other) = (row.key.slice(..of.len()), row.key.slice(of.len()..));
            if !reversed {
                let value = row.value(INFO, "v").cloned().unwrap_or_default();
                found.extend([other, value]);
            } else if other == of {
                let name = row.value(INFO, "n").cloned().unwrap_or_default();
                found.extend([one, name]);
            }
        }
        Ok(found)
    }
}

impl Run {
    pub(super) async fn many_to_many(&self) -> Result<PartReport> {
        let (lab, arguments) = (&self.lab, &self.arguments);
        let enrolment = Enrolment {
            students: arguments.rows,
            courses: arguments.courses,
            each: arguments.relations,
        };
        let mut part = PartReport::new(
            "many-to-many",
            "Many to many: students and courses",
            format!(
                "{} students take up to {} of {} courses. The relation is stored as columns of both tables, as a table with a \
                 row for each direction, and as a table with a row for one. Asked are the courses of a student and the \
                 students of a course.",
                arguments.rows, arguments.relations, arguments.courses
            ),
        );
        let by_course = enrolment.students_by_course();
        let mut first: Option<[Asked; 2]> = None;
        for (stored, name) in [
            (Stored::Columns, "columns"),
            (Stored::Relation, "relation table"),
            (Stored::OneWay, "relation, one way"),
        ] {
            let mut tables = Vec::new();
            let names: &[&str] = match stored {
                Stored::Columns => &["students", "courses"],
                Stored::Relation => &["enrolment"],
                Stored::OneWay => &["enrolment_one_way"],
            };
            for table in names {
                let families = vec![FamilySchema::new(INFO), FamilySchema::new(RELATED)];
                tables.push(lab.create(table, families, true).await?);
            }
            let data = &lab.data;
            let students = |student| student_rows(data, stored, enrolment, student);
            let mut filled = self
                .fill_relation(&tables[0], enrolment.students, students)
                .await?;
            if stored != Stored::OneWay {
                let courses = |course: u64| course_rows(data, stored, &by_course, course);
                let table = tables.last().unwrap_or(&tables[0]);
                filled = filled.and(self.fill_relation(table, enrolment.courses, courses).await?);
            }
            for table in &tables {
                lab.settle(table).await?;
            }
            let ask = |asks, things| Related { stored, asks, things };
            let courses_of = lab
                .ask(
                    &format!("{name}: courses of a student"),
                    &tables,
                    arguments.questions,
                    ask(Asks::CoursesOf, enrolment.students),
                )
                .await?;
            let questions = if stored == Stored::OneWay {
                self.few_questions()
            } else {
                arguments.questions
            };
            let students_of = lab
                .ask(
                    &format!("{name}: students of a course"),
                    &tables,
                    questions,
                    ask(Asks::StudentsOf, enrolment.courses),
                )
                .await?;
            let mut way = Way::new(name);
            describe(
                &mut way,
                "courses of a student",
                [
                    "courses_p50_ms",
                    "courses_calls",
                    "courses_bytes",
                    "courses_rows_read",
                ],
                &courses_of,
            );
            describe(
                &mut way,
                "students of a course",
                [
                    "students_p50_ms",
                    "students_calls",
                    "students_bytes",
                    "students_rows_read",
                ],
                &students_of,
            );
            describe_writing(&mut way, filled, enrolment.students);
            let sizes = lab.sizes(&tables).await?;
            way.figure("file_bytes", sizes.map(|sizes| sizes.file_bytes));
            part.add(way);
            if let Some([courses, students]) = &first {
                compare(
                    &mut part,
                    "courses of a student",
                    ("columns", courses),
                    (name, &courses_of),
                );
                compare(
                    &mut part,
                    "students of a course",
                    ("columns", students),
                    (name, &students_of),
                );
            } else {
                first = Some([courses_of, students_of]);
            }
            lab.drop_tables(&tables).await?;
        }
        let (columns, relation, one_way) = ("columns", "relation table", "relation, one way");
        part.judge(
            "Columns answer with one row; a relation table reads a row for each course.",
            "courses_rows_read",
            [relation, columns],
            Rule::AtLeast(2.0),
        );
        part.judge(
            "Columns are faster than a relation table for the few courses of a student.",
            "courses_p50_ms",
            [relation, columns],
            Rule::AtLeast(1.2),
        );
        part.judge(
            "Columns are faster than a relation table for the many students of a course.",
            "students_p50_ms",
            [relation, columns],
            Rule::AtLeast(1.2),
        );
        part.judge(
            "A relation that is stored in one direction only reads the whole table in the other.",
            "students_rows_read",
            [one_way, relation],
            Rule::AtLeast(10.0),
        );
        part.judge(
            "The second direction of a relation is paid for with space.",
            "file_bytes",
            [relation, one_way],
            Rule::AtLeast(1.2),
        );
        part.notes.push(
            "A row is atomic, two are not: with columns and with both directions, a program that stops between its two writes \
             leaves a student in a course that does not know him."
                .to_owned(),
        );
        Ok(part)
    }

    /// Writes the rows of each thing. One thing may be several rows, so they are written as they come.
    async fn fill_relation<F>(&self, table: &str, things: u64, rows: F) -> Result<crate::Filled>
    where
        F: Fn(u64) -> Vec<RowCells>,
    {
        let all: Vec<RowCells> = (0..things).flat_map(rows).collect();
        let count = all.len() as u64;
        let pick = move |number: u64| all[usize::try_from(number).unwrap_or_default()].clone();
        self.lab.fill(table, count, false, pick).await
    }
}

/// The rows of a student.
fn student_rows(data: &Data, stored: Stored, enrolment: Enrolment, student: u64) -> Vec<RowCells> {
    let courses = enrolment.courses_of(student).into_iter();
    let of = key('s', student);
    match stored {
        Stored::Columns => {
            let mut cells = vec![cell(INFO, "name", name(data, student))];
            cells.extend(courses.map(|course| cell(RELATED, key('c', course), title(data, course))));
            vec![row(of, cells)]
        }
        Stored::Relation | Stored::OneWay => courses
            .map(|course| {
                let mut cells = vec![cell(INFO, "v", title(data, course))];
                if stored == Stored::OneWay {
                    cells.push(cell(INFO, "n", name(data, student)));
                }
                row(relation_key(&of, &key('c', course)), cells)
            })
            .collect(),
    }
}

/// The rows of a course.
fn course_rows(data: &Data, stored: Stored, by_course: &[Vec<u64>], course: u64) -> Vec<RowCells> {
    let students = usize::try_from(course).ok().and_then(|at| by_course.get(at));
    let students = students.into_iter().flatten().copied();
    let of = key('c', course);
    if stored == Stored::Columns {
        let mut cells = vec![cell(INFO, "title", title(data, course))];
        cells.extend(students.map(|student| cell(RELATED, key('s', student), name(data, student))));
        return vec![row(of, cells)];
    }
    students
        .map(|student| {
            let cells = vec![cell(INFO, "v", name(data, student))];
            row(relation_key(&of, &key('s', student)), cells)
        })
        .collect()
}

/// Both keys are of fixed length, so that one's rows cannot lie among another's.
fn relation_key(one: &Bytes, other: &Bytes) -> Bytes {
    Bytes::from([&one[..], &other[..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENROLMENT: Enrolment = Enrolment {
        students: 100,
        courses: 20,
        each: 5,
    };

    #[test]
    fn both_directions_say_the_same() {
        let by_course = ENROLMENT.students_by_course();
        let mut pairs = 0;
        for student in 0..100 {
            let courses = ENROLMENT.courses_of(student);
            assert_eq!(courses.len(), 5);
            assert!(courses.is_sorted() && courses.iter().all(|course| *course < 20));
            for course in courses {
                assert!(by_course[usize::try_from(course).unwrap()].contains(&student));
                pairs += 1;
            }
        }
        assert_eq!(by_course.iter().map(Vec::len).sum::<usize>(), pairs);
    }

    #[test]
    fn rows_have_the_documented_layout() {
        let data = Data::small_file();
        let course = ENROLMENT.courses_of(7)[0];
        let related = student_rows(&data, Stored::Relation, ENROLMENT, 7);
        assert_eq!(related.len(), 5);
        assert_eq!(
            related[0].key,
            format!("s00000007c{course:08}").as_bytes().to_vec()
        );
        let columns = student_rows(&data, Stored::Columns, ENROLMENT, 7);
        assert_eq!((columns.len(), columns[0].cells.len()), (1, 6));
        let title = data.text(course, String::new);
        assert_eq!(
            (&columns[0].cells[1].1, &related[0].cells[0].1),
            (&title.clone().into(), &title.into())
        );
        assert_eq!(
            student_rows(&data, Stored::OneWay, ENROLMENT, 7)[0].cells.len(),
            2
        );
        let by_course = ENROLMENT.students_by_course();
        let rows = course_rows(&data, Stored::Relation, &by_course, course);
        assert!(
            rows.iter()
                .any(|row| row.key == format!("c{course:08}s00000007").as_bytes())
        );
        assert_eq!(course_rows(&data, Stored::Columns, &by_course, course).len(), 1);
    }

    #[test]
    fn more_relations_than_courses_are_all_courses() {
        let all = Enrolment {
            students: 1,
            courses: 3,
            each: 9,
        };
        assert_eq!(all.courses_of(0), [0, 1, 2]);
    }
}
