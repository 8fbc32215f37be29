//! Makes a script that shows a difference as short as it gets.
//!
//! 1. Everything behind the difference goes.
//! 2. Reads go, all at once if that works: they change nothing.
//! 3. Steps are removed, in ever smaller pieces, while the difference at the last step stays (delta
//!    debugging: Zeller and Hildebrandt, 2002).
//! 4. Inside the remaining calls, optional fields and elements of lists are removed in the same
//!    way.
//!
//! The difference may change while it is shrunk; it is always one at the last step.

use basalt_calls::Value;
use basalt_idl::schema::{Requiredness, StructDescriptor, StructKind, TypeDescriptor};

use super::script::{Line, Script, Step};

/// Makes `script`, whose last step differs, shorter. `differs` says whether a script's last step still does.
pub fn shrink(mut script: Script, mut differs: impl FnMut(&Script) -> bool) -> Script {
    drop_reads(&mut script, &mut differs);
    drop_steps(&mut script, &mut differs);
    let mut index = 0;
    while index < script.lines.len() {
        simplify(&mut script, index, &mut differs);
        index += 1;
    }
    drop_steps(&mut script, &mut differs);
    script
}

/// Beginnings of the names of methods that change nothing. A scanner that the last step uses stays.
const READS: [&str; 6] = ["get", "exists", "is", "list", "scan", "tableExists"];

fn drop_reads(script: &mut Script, differs: &mut impl FnMut(&Script) -> bool) {
    let Some(last) = script.lines.pop() else { return };
    let used = match &last.step {
        Step::Call(call) => call.scanner(),
        _ => None,
    };
    let mut shorter = script.clone();
    shorter.lines.retain(|line| {
        let Step::Call(call) = &line.step else { return true };
        let scanner = |number: Option<u32>| number.is_some() && number == used;
        let uses = scanner(call.scanner());
        let reads = READS.iter().any(|read| call.method.name.starts_with(read));
        let scans = call.opens.is_some() || call.method.name.contains("canner");
        uses || scanner(call.opens) || !(reads || scans)
    });
    script.lines.push(last.clone());
    shorter.lines.push(last);
    if differs(&shorter) {
        *script = shorter;
    }
}

/// Steps at the beginning that make the tables: without them every call is an error, and slow.
const CREATIONS: usize = 3;

fn drop_steps(script: &mut Script, differs: &mut impl FnMut(&Script) -> bool) {
    let mut piece = (script.lines.len() / 2).max(1);
    loop {
        let mut end = script.lines.len().saturating_sub(1).max(CREATIONS);
        while end > CREATIONS {
            let start = end.saturating_sub(piece).max(CREATIONS);
            let mut shorter = script.clone();
            shorter.lines.drain(start..end);
            if differs(&shorter) {
                *script = shorter;
            }
            end = start;
        }
        if piece == 1 {
            return;
        }
        piece /= 2;
    }
}

fn simplify(script: &mut Script, index: usize, differs: &mut impl FnMut(&Script) -> bool) {
    let mut tried = 0;
    loop {
        let Step::Call(call) = &script.lines[index].step else {
            return;
        };
        let Some(args) = simpler_struct(call.method.args, &call.args, &mut { tried }) else {
            return;
        };
        let mut simpler = script.clone();
        if let Step::Call(call) = &mut simpler.lines[index].step {
            call.args = args;
        }
        if differs(&simpler) {
            *script = simpler;
        } else {
            tried += 1;
        }
    }
}

type Fields = Vec<(&'static str, Value)>;

/// The struct with one thing less: the `skip`-th that can go. Counts `skip` down; `None` when fewer
/// than `skip` can go.
fn simpler_struct(of: &StructDescriptor, fields: &Fields, skip: &mut usize) -> Option<Fields> {
    for (index, (name, value)) in fields.iter().enumerate() {
        let field = of.fields.iter().find(|field| field.name == *name)?;
        if field.requiredness != Requiredness::Required && of.kind != StructKind::Union {
            if *skip == 0 {
                let mut fewer = fields.clone();
                fewer.remove(index);
                return Some(fewer);
            }
            *skip -= 1;
        }
        if let Some(simpler) = simpler_value(&field.ty, value, skip) {
            let mut changed = fields.clone();
            changed[index].1 = simpler;
            return Some(changed);
        }
    }
    None
}

fn simpler_value(ty: &TypeDescriptor, value: &Value, skip: &mut usize) -> Option<Value> {
    match (ty, value) {
        (TypeDescriptor::Struct(of), Value::Struct(fields)) => {
            simpler_struct(of, fields, skip).map(Value::Struct)
        }
        (TypeDescriptor::List(element), Value::List(values)) => {
            for (index, value) in values.iter().enumerate() {
                if values.len() > 1 {
                    if *skip == 0 {
                        let mut fewer = values.clone();
                        fewer.remove(index);
                        return Some(Value::List(fewer));
                    }
                    *skip -= 1;
                }
                if let Some(simpler) = simpler_value(element, value, skip) {
                    let mut changed = values.clone();
                    changed[index] = simpler;
                    return Some(Value::List(changed));
                }
            }
            None
        }
        _ => None,
    }
}

/// The script up to and with this step.
pub fn prefix(script: &Script, last: usize) -> Script {
    let lines: Vec<Line> = script.lines[..=last].to_vec();
    Script {
        comment: script.comment.clone(),
        lines,
    }
}
