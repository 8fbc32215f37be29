//! Expressions to values.

use super::super::ShellResult;
use super::super::syntax::{Expression, MethodCall, Operator, Value};
use super::checks::{check_size, to_text, wrong};
use super::{Variables, assign, format, items, methods};

pub(super) fn evaluate_all(expressions: &[Expression], variables: &Variables) -> ShellResult<Vec<Value>> {
    expressions
        .iter()
        .map(|expression| evaluate(expression, variables))
        .collect()
}

/// The value of an expression. The depth of the recursion is that of the parser.
pub(super) fn evaluate(expression: &Expression, variables: &Variables) -> ShellResult<Value> {
    Ok(match expression {
        Expression::Literal(Value::Constant(name)) => methods::constant(name),
        Expression::Literal(value) => value.clone(),
        Expression::Variable(name) => match variables.get(name) {
            Some(value) => value.clone(),
            None => {
                return wrong(format!(
                    "'{name}' has no meaning here (names are strings: write '{name}')"
                ));
            }
        },
        Expression::Text(parts) => {
            let mut text = Vec::new();
            for part in parts {
                text.extend(to_text(&evaluate(part, variables)?));
                check_size(text.len())?;
            }
            Value::Bytes(text)
        }
        Expression::Array(elements) => Value::Array(evaluate_all(elements, variables)?),
        Expression::Hash(pairs) => {
            let pairs = pairs
                .iter()
                .map(|(key, value)| Ok((key.clone(), evaluate(value, variables)?)));
            Value::Hash(pairs.collect::<ShellResult<_>>()?)
        }
        Expression::Range(ends) => {
            let (first, last, is_exclusive) = &**ends;
            range(
                &evaluate(first, variables)?,
                &evaluate(last, variables)?,
                *is_exclusive,
            )?
        }
        Expression::Operations(first, others) => {
            let mut value = evaluate(first, variables)?;
            for (operator, other) in others {
                value = operate(value, *operator, evaluate(other, variables)?)?;
            }
            value
        }
        Expression::Calls(base, calls) => match &**base {
            Expression::Variable(name) if variables.get(name).is_none() => {
                of_package(name, calls, variables)?
            }
            Expression::Literal(Value::Constant(class)) => of_class(class, calls, variables)?,
            base => call_all(evaluate(base, variables)?, calls, variables)?,
        },
        Expression::Map(base, names, body) => map(evaluate(base, variables)?, names, body, variables)?,
    })
}

/// The value of an expression for each item, which the names get; they have no meaning behind it.
fn map(base: Value, names: &[String], body: &Expression, variables: &Variables) -> ShellResult<Value> {
    let mut items = items(base)?;
    let mut inner = variables.clone();
    let (mut values, mut size) = (Vec::new(), 0);
    while let Some(item) = items.next() {
        assign(&mut inner, names, item);
        let value = evaluate(body, &inner)?;
        size += 1 + to_text(&value).len();
        check_size(size)?;
        values.push(value);
    }
    Ok(Value::Array(values))
}

/// Calls methods, each on the value before.
fn call_all(mut value: Value, calls: &[MethodCall], variables: &Variables) -> ShellResult<Value> {
    for method in calls {
        let arguments = evaluate_all(&method.arguments, variables)?;
        value = methods::call(value, &method.name, &arguments)?;
    }
    Ok(value)
}

/// The value of `first.rest...`, where `first` is no variable: the package of a Java class.
pub(super) fn of_package(first: &str, calls: &[MethodCall], variables: &Variables) -> ShellResult<Value> {
    let is_class = |call: &MethodCall| call.name.starts_with(|letter: char| letter.is_ascii_uppercase());
    if !methods::is_package(first) {
        return wrong(format!(
            "'{first}' is no variable; a table gets one with {first} = get_table 'name'"
        ));
    }
    match calls.iter().position(is_class) {
        Some(at) => of_class(&calls[at].name, &calls[at + 1..], variables),
        None => methods::not_java(first),
    }
}

/// The value of methods of a Java class.
fn of_class(class: &str, calls: &[MethodCall], variables: &Variables) -> ShellResult<Value> {
    let Some((method, others)) = calls.split_first() else {
        return Ok(Value::Constant(class.to_owned()));
    };
    let is_constant = |call: &MethodCall| call.name.starts_with(|letter: char| letter.is_ascii_uppercase());
    if let Some(last) = calls.last()
        && calls.iter().all(is_constant)
    {
        return Ok(methods::constant(&last.name));
    }
    methods::check_class(class, &method.name)?;
    let arguments = evaluate_all(&method.arguments, variables)?;
    let value = methods::of_class(class, &method.name, &arguments)?;
    call_all(value, others, variables)
}

fn range(first: &Value, last: &Value, is_exclusive: bool) -> ShellResult<Value> {
    match (first, last) {
        (Value::Integer(first), Value::Integer(last)) if is_exclusive => Ok(match last.checked_sub(1) {
            Some(last) => Value::Range(*first, last),
            None => Value::Array(Vec::new()),
        }),
        (Value::Integer(first), Value::Integer(last)) => Ok(Value::Range(*first, *last)),
        (Value::Bytes(first), Value::Bytes(last)) => match (&first[..], &last[..]) {
            ([first], [last]) => {
                let end = last.saturating_sub(u8::from(is_exclusive));
                let letters = (*first..=end).map(|letter| Value::Bytes(vec![letter]));
                Ok(Value::Array(letters.collect()))
            }
            _ => wrong("a range of strings is one of single letters: 'a'..'z'"),
        },
        _ => wrong(format!(
            "a range goes from number to number or letter to letter, not from {} to {}",
            first.kind(),
            last.kind()
        )),
    }
}

fn operate(left: Value, operator: Operator, right: Value) -> ShellResult<Value> {
    match (left, operator, right) {
        (Value::Integer(left), operator, Value::Integer(right)) => integers(left, operator, right),
        (Value::Float(left), operator, Value::Float(right)) => floats(left, operator, right),
        (Value::Integer(left), operator, Value::Float(right)) => floats(left as f64, operator, right),
        (Value::Float(left), operator, Value::Integer(right)) => floats(left, operator, right as f64),
        (Value::Bytes(mut left), Operator::Add, Value::Bytes(right)) => {
            check_size(left.len() + right.len())?;
            left.extend(right);
            Ok(Value::Bytes(left))
        }
        (Value::Bytes(text), Operator::Multiply, Value::Integer(count)) => {
            let Ok(count) = usize::try_from(count) else {
                return wrong(format!("a string is repeated {count} times"));
            };
            check_size(text.len().saturating_mul(count))?;
            Ok(Value::Bytes(text.repeat(count)))
        }
        (Value::Bytes(text), Operator::Modulo, Value::Array(values)) => format::format(&text, &values),
        (Value::Bytes(text), Operator::Modulo, value) => format::format(&text, &[value]),
        (Value::Array(mut left), Operator::Add, Value::Array(right)) => {
            check_size(left.len() + right.len())?;
            left.extend(right);
            Ok(Value::Array(left))
        }
        (Value::Bytes(_), Operator::Add, right) => wrong(format!(
            "a string and {} are joined inside of a string: \"row#{{i}}\"",
            right.kind()
        )),
        (left, operator, right) => wrong(format!(
            "{operator:?} does not go with {} and {}",
            left.kind(),
            right.kind()
        )),
    }
}

/// Whole numbers. Division rounds down, as in Ruby.
fn integers(left: i64, operator: Operator, right: i64) -> ShellResult<Value> {
    if right == 0 && matches!(operator, Operator::Divide | Operator::Modulo) {
        return wrong("a number is divided by 0");
    }
    let rounds_down = || left % right != 0 && (left < 0) != (right < 0);
    let result = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide if right == -1 => left.checked_neg(),
        Operator::Divide => Some(left / right - i64::from(rounds_down())),
        Operator::Modulo if right == -1 => Some(0),
        Operator::Modulo if rounds_down() => Some(left % right + right),
        Operator::Modulo => Some(left % right),
    };
    result.map_or_else(
        || wrong("a number is outside of 64 bits"),
        |number| Ok(Value::Integer(number)),
    )
}

fn floats(left: f64, operator: Operator, right: f64) -> ShellResult<Value> {
    let result = match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::Modulo => left.rem_euclid(right),
    };
    if result.is_finite() {
        return Ok(Value::Float(result));
    }
    wrong("a number with a fraction is too large, or divided by 0")
}
